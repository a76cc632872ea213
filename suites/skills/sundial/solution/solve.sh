#!/bin/bash
set -e
python3 <<'END'
from datetime import date
from math import atan2, cos, degrees, radians, sin, tan

site = dict(line.split(" ", 1) for line in open("/home/mason/site.txt").read().splitlines())
latitude = radians(float(site["latitude"]))
number = date.fromisoformat(site["day"]).timetuple().tm_yday
declination = radians(-23.44 * cos(radians(360 / 365 * (number + 10))))
with open("/home/mason/lines.csv", "w") as file:
    print("hour,angle", file=file)
    for hour in map(int, site["hours"].split()):
        angle = radians(15 * (hour - 12))
        if cos(angle) > -tan(latitude) * tan(declination):
            line = degrees(atan2(sin(latitude) * sin(angle), cos(angle)))
            print(f"{hour},{line:.1f}", file=file)
END
cat /home/mason/lines.csv
