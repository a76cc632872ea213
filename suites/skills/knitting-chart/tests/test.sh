#!/bin/bash
# Several rewards: how much is right, and whether everything is.
pip3 install --break-system-packages pytest==8.4.1 pytest-json-ctrf==0.3.5

cd /tests
pytest --ctrf /logs/verifier/ctrf.json /tests/test_counts.py -rA
python3 /tests/rewards.py
