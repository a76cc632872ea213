#!/bin/bash
set -e
tr , . < sales.csv | awk -F';' '$1 == "north" {sum += $2} END {printf "%.2f\n", sum}' > total.txt
echo "The region north sold $(cat total.txt)." > /logs/agent/answer.txt
