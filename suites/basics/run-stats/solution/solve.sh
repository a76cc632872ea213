#!/bin/bash
set -e
python3 stats.py numbers.txt > result.txt
echo "The median is $(awk '$1 == "median" {print $2}' result.txt)." > /logs/agent/answer.txt
