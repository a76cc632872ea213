#!/bin/bash

pip3 install --break-system-packages pytest==8.4.1 pytest-json-ctrf==0.3.5

mkdir -p /logs/verifier

cd /root
python3 -m pytest --ctrf /logs/verifier/ctrf.json /tests/test_legs.py -rA -v

if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi

exit 0
