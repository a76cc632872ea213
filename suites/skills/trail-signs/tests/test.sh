#!/bin/bash
# Plain shell: every line of `wrong` is something that is not as it should be.
cd /srv/trail || exit 1
wrong=()

is() { [ "$2" = "$3" ] || wrong+=("$1: expected '$3', found '$2'"); }

is "current" "$(readlink current)" "releases/r3"
is "signs of r3" "$(cat releases/r3/signs/*)" $'Ford: 22 min\nHut: 1 h 5 min\nMill: 45 min'
is "names in r3" "$(ls releases/r3/signs | tr '\n' ' ')" "ford.txt hut.txt mill.txt "
is "executable in r3" "$(find releases/r3 -type f -perm -100 | sort | tr '\n' ' ')" \
  "releases/r3/bin/count.sh releases/r3/bin/print.sh "
is "r3 counts" "$(current/bin/count.sh)" "3"
is "names in r1" "$(ls releases/r1/signs | tr '\n' ' ')" "ford.txt hut.txt mill.txt "
is "names in r2" "$(ls releases/r2/signs | tr '\n' ' ')" "ford.txt hut.txt old-oak.txt "
is "ford in r2" "$(cat releases/r2/signs/ford.txt)" "Ford: 25 min"
is "top folder" "$(ls | tr '\n' ' ')" "current releases "

printf '%s\n' "${wrong[@]}"
if [ ${#wrong[@]} -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
