#!/bin/bash
set -eu
awk -v none="$GAUGE_NONE" '$2 != none' readings/*.txt | sort > /tmp/all.txt
awk -v datum="$GAUGE_DATUM" -v decimals="$DECIMALS" '
  { time[NR] = $1; height[NR] = $2 + 0 }
  END {
    print "time,height"
    for (i = 3; i <= NR - 2; i++) {
      here = height[i]
      if (here > height[i-1] && here > height[i-2] && here > height[i+1] && here > height[i+2])
        printf "%s,%.*f\n", time[i], decimals, here - datum
    }
  }' /tmp/all.txt > high_waters.csv
