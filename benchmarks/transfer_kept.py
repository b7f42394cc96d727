"""Rows of docs/transfer.md of sets with too few results here: they stay as they are, marked."""

from __future__ import annotations

__all__ = ["MARK", "behind", "kept_rows", "kept_section"]

MARK = " †"


def kept_rows(page: str, heading: str) -> dict[str, str]:
    """Return the rows of the first table under a heading of a page, by set, each marked."""
    below = page.partition(f"{heading}\n")[2].splitlines()
    start = next((i for i, line in enumerate(below) if line.startswith("|---")), len(below))
    rows: dict[str, str] = {}
    for line in below[start + 1 :]:
        if not line.startswith("| "):
            break
        name, rest = line[2:].split(" |", 1)
        name = name.removesuffix(MARK)
        rows[name] = f"| {name}{MARK} |{rest}"
    return rows


def kept_section(page: str, heading: str) -> str:
    """Return what is under a heading of a page from its first table on, the row marked."""
    body = page.partition(f"{heading}\n")[2].partition("\n## ")[0]
    table = body[body.index("\n|") + 1 :] if "\n|" in body else ""
    for name, row in kept_rows(page, heading).items():
        table = table.replace(row.replace(f"{name}{MARK}", name), row)
    return table


def behind(row: str) -> float:
    """Read how far a row's choice is behind the best by hand, to a tenth of a point."""
    return float(row.split("|")[-3].split()[0])
