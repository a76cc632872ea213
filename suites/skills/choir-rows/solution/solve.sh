#!/bin/bash
set -e
python3 - <<'END'
import csv
from itertools import permutations

with open("singers.csv") as file:
    singers = {row["name"]: row for row in csv.DictReader(file)}
cm = {name: int(row["cm"]) for name, row in singers.items()}
for order in permutations(singers):
    place = {name: divmod(number, 3) for number, name in enumerate(order)}
    row = {name: where[0] for name, where in place.items()}
    if (
        all(cm[order[n]] < cm[order[n + 3]] for n in range(6))
        and all(row[name] == 2 for name in singers if singers[name]["voice"] == "bass")
        and place["Dina"] == (row["Alma"], place["Alma"][1] + 1)
        and row["Hugo"] != row["Egon"]
        and row["Ida"] != 0
        and place["Cora"][1] == 2
        and place["Gita"] == (row["Bo"] - 1, place["Bo"][1])
    ):
        with open("rows.txt", "w") as file:
            file.writelines(" ".join(order[n : n + 3]) + "\n" for n in (0, 3, 6))
        break
END
