#!/bin/bash
set -e
echo 1.5.0 > VERSION
echo '1.5.0: faster search' > NEWS.md
rm build.tmp
echo "The folder has" * > /logs/agent/answer.txt
