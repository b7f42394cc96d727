"""Make the bundled sample: three hospitals' own files, each written in its own way, and new rows.

Run it as ``python scripts/make_sites.py``; it writes src/dtsvm/data/sites/ anew, the same bytes
each time. The patients are invented: no value comes from a person.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent.parent / "src/dtsvm/data/sites"
ROWS = {"north": 160, "south": 120, "west": 80, "new": 150}
WARDS = {
    "north": ["surgery", "medicine"],
    "south": ["medicine", "surgery", "cardiology"],
    "west": ["medicine", "geriatrics"],
    "new": ["medicine", "surgery", "cardiology", "geriatrics", "maternity"],
}
WARD_EFFECT = {"cardiology": 0.8, "geriatrics": 0.5, "maternity": -0.5}
GAPS = {"age": 0.03, "creatinine": 0.15, "smoker": 0.08, "ward": 0.02}


def patients(site: str, rng: np.random.Generator) -> list[dict[str, object]]:
    """Draw a site's patients; the lung is rare, and depends on smoking where the heart on age."""
    found = []
    start = {"north": 10_001, "south": 52_301, "west": 7_411, "new": 90_001}[site]
    for i in range(ROWS[site]):
        disease = "lung" if rng.random() < 0.25 else "heart"
        age = rng.normal(66, 11)
        creatinine = float(np.exp(rng.normal(0.1, 0.35)))
        dose = 250 * rng.integers(1, 8) + 0.5 * rng.integers(0, 2)
        smoker = bool(rng.random() < 0.35)
        ward = str(rng.choice(WARDS[site]))
        risk = 1.2 * (creatinine - 1.1) / 0.4 + (age - 66) / 11 - 0.3 * (dose - 1000) / 500
        risk += (1.8 if disease == "lung" else 0.5) * (smoker - 0.35) + WARD_EFFECT.get(ward, 0)
        found.append(
            {
                "patient_id": start + 3 * i,
                "disease": disease,
                "age": round(age),
                "creatinine": round(creatinine, 2),
                "dose": float(dose),
                "smoker": smoker,
                "ward": ward,
                "admitted": np.datetime64("2024-01-01") + int(rng.integers(0, 366)),
                "country": "Freedonia",
                "readmitted": "yes" if risk + rng.normal() > 0.7 else "no",
            }
        )
        for name, share in GAPS.items():
            if rng.random() < share:
                found[-1][name] = None
    return found


def write_north(rows: list[dict[str, object]]) -> bytes:
    """Plain: commas, points, yes and no, empty cells."""
    return to_csv(
        rows, list(rows[0]), ",", lambda name, value: "" if value is None else plain(value)
    )


def write_south(rows: list[dict[str, object]]) -> bytes:
    """As a German Excel writes: a byte-order mark, semicolons, decimal commas; another order."""
    order = ["patient_id", "readmitted", "ward", "smoker", "dose", "creatinine", "age", "disease",
             "country", "admitted"]  # fmt: skip

    def cell(name: str, value: object) -> str:
        if value is None:
            return "NA"
        if name == "dose":
            return f"{value:,.1f}".replace(",", " ").replace(".", ",").replace(" ", ".")
        if name == "admitted":
            return str(value.astype(object).strftime("%d.%m.%Y"))  # type: ignore[attr-defined]
        return plain(value).replace(".", ",")

    return b"\xef\xbb\xbf" + to_csv(rows, order, ";", cell)


def write_west(rows: list[dict[str, object]]) -> bytes:
    """From a database: tabs, 1 and 0, points for gaps; the order turned round."""
    order = list(reversed(rows[0]))

    def cell(name: str, value: object) -> str:
        if value is None:
            return "."
        return str(int(value)) if name == "smoker" else plain(value)  # type: ignore[call-overload]

    return to_csv(rows, order, "\t", cell)


def plain(value: object) -> str:
    """Write a value as most people would."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def to_csv(rows, order, delimiter, cell) -> bytes:  # type: ignore[no-untyped-def]
    """Write rows with units in the headings."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    units = {"age": "age (years)", "creatinine": "creatinine (mg/dl)", "dose": "dose (mg)"}
    writer.writerow([units.get(name, name) for name in order])
    writer.writerows([cell(name, row[name]) for name in order] for row in rows)
    return text.getvalue().encode()


def main() -> None:
    """Write the four files."""
    rng = np.random.default_rng(20240101)
    FOLDER.mkdir(exist_ok=True)
    writers = {"north": write_north, "south": write_south, "west": write_west, "new": write_north}
    for site, write in writers.items():
        (FOLDER / f"{site}.csv").write_bytes(write(patients(site, rng)))


if __name__ == "__main__":
    main()
