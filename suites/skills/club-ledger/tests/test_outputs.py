"""The treasurer's workbook."""

import re
from datetime import date, datetime
from pathlib import Path

import pytest
from openpyxl import load_workbook

ENTRIES = [
    (date(2025, 1, 2), "Fees of 31 members", "fees", 1860.0),
    (date(2025, 2, 5), "Rent of the shed", "shed", -450.0),
    (date(2025, 3, 14), "Varnish for the double", "boats", -86.4),
    (date(2025, 6, 20), "Regatta: entries", "regattas", -240.0),
    (date(2025, 6, 21), "Regatta: cake stall", "regattas", 312.75),
    (date(2025, 8, 5), "Rent of the shed", "shed", -450.0),
    (date(2025, 9, 11), "Oar bought second hand", "boats", -130.0),
    (date(2025, 11, 30), "Fees of 2 late members", "fees", 60.0),
]
ACCOUNTS = ["boats", "fees", "regattas", "shed"]


@pytest.fixture(scope="module")
def book():
    path = Path("/root/ledger.xlsx")
    assert path.is_file(), "ledger.xlsx was not written"
    return load_workbook(path)


def test_the_entries_are_in_the_order_of_their_dates(book):
    head, *rows = book["Entries"].iter_rows(max_col=4, values_only=True)
    assert head == ("date", "what", "account", "amount")
    days = [row[0].date() if isinstance(row[0], datetime) else row[0] for row in rows]
    assert [(day, *row[1:]) for day, row in zip(days, rows, strict=True)] == ENTRIES


def test_every_account_has_a_sumif_over_the_entries(book):
    head, *rows = book["Summary"].iter_rows(max_col=2, values_only=True)
    assert head == ("account", "total")
    assert [name for name, _ in rows] == [*ACCOUNTS, "balance"]
    for name, formula in rows[:-1]:
        assert re.fullmatch(r"=SUMIF\(.*Entries.*Entries.*\)", str(formula)), (name, formula)


def test_the_balance_sums_the_totals(book):
    formula = book["Summary"].cell(row=2 + len(ACCOUNTS), column=2).value
    assert str(formula).replace("$", "") == f"=SUM(B2:B{1 + len(ACCOUNTS)})"
