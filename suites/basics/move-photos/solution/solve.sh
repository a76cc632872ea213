#!/bin/bash
set -e
mkdir photos
mv *.jpg photos/
ls photos > index.txt
echo "There are 3 photos." > /logs/agent/answer.txt
