#!/bin/bash
set -e
tr A-Z a-z < names.txt | sort -u > clean.txt
echo "clean.txt has $(wc -l < clean.txt) names." > /logs/agent/answer.txt
