#!/bin/bash
set -e
name=$(cat seen.txt)
character=$(sed -n "s/^$name  *\(.*s\)  *[0-9]*$/\1/p" lights.txt)
echo "$(cat now.txt) $name, $character" >> LOG.md
