#!/bin/bash
set -e
echo "This cannot be done: prices-2025.csv does not exist, there are only the files of 2023 and 2024." > /logs/agent/answer.txt
