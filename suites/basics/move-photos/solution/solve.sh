#!/bin/bash
set -e
mkdir photos
mv *.jpg photos/
echo "There are 3 photos." > /logs/agent/answer.txt
