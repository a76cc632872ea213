#!/bin/bash
set -e
echo 1.5.0 > VERSION
echo '- 1.5.0: faster search' >> CHANGELOG.md
rm build.tmp
echo "CHANGELOG.md has $(wc -l < CHANGELOG.md) lines now." > /logs/agent/answer.txt
