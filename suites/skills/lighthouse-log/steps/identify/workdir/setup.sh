#!/bin/bash
# The watch begins after the list was read.
set -e
echo "white light comes on at: 3.0 5.5 13.0 15.5 23.0 25.5 33.0 35.5 43.0 45.5 53.0 55.5" > watch.txt
