#!/bin/bash
set -e
cd /srv/trail
ln -sfn releases/r3 current
for sign in $(cat releases/r3/MANIFEST); do
  for release in r2 r1; do
    if [ ! -e releases/r3/signs/$sign ] && [ -e releases/$release/signs/$sign ]; then
      cp -p releases/$release/signs/$sign releases/r3/signs/
    fi
  done
done
for file in releases/r3/signs/*; do
  grep -qx "$(basename "$file")" releases/r3/MANIFEST || rm "$file"
done
chmod +x releases/r3/bin/*.sh
rm UPLOADING
