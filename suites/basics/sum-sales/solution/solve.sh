#!/bin/bash
set -e
awk -F';' '$1 == "north" {sum += $2} END {print sum}' sales.csv > total.txt
echo "The region north sold $(cat total.txt)." > /logs/agent/answer.txt
