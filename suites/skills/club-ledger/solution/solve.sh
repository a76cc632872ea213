#!/bin/bash
set -e
python3 - <<'END'
import csv
from datetime import datetime

from openpyxl import Workbook

with open("/root/ledger.csv", newline="") as file:
    entries = list(csv.DictReader(file))
for entry in entries:
    entry["date"] = datetime.strptime(entry["date"], "%d.%m.%Y").date()
    entry["amount"] = float(entry["amount"])
entries.sort(key=lambda entry: entry["date"])

book = Workbook()
sheet = book.active
sheet.title = "Entries"
sheet.append(list(entries[0]))
for entry in entries:
    sheet.append(list(entry.values()))

summary = book.create_sheet("Summary")
summary.append(["account", "total"])
for row, account in enumerate(sorted({entry["account"] for entry in entries}), start=2):
    summary.append([account, f"=SUMIF(Entries!C:C,A{row},Entries!D:D)"])
summary.append(["balance", f"=SUM(B2:B{summary.max_row})"])
book.save("/root/ledger.xlsx")
END
