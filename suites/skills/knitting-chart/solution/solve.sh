#!/bin/bash
python3 /solution/count.py
