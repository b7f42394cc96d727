"""The bundled sample of messy files: three hospitals that each write in their own way."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["SITES", "read_site"]

# Rows to train on, and rows that came later.
SITES = ("north", "south", "west", "new")


def read_site(name: str) -> bytes:
    r"""Return a site's file as it is.

    The rows are invented: patients with heart or lung disease, and whether they were readmitted.
    North writes plainly, south with semicolons and decimal commas, west with tabs, 0 and 1, and
    points for gaps; the columns stand in another order at each, and some wards are at one site
    only. "new" has rows that came later.

    Examples
    --------
    >>> read_site("west").decode().split("\t")[:4]
    ['readmitted', 'country', 'admitted', 'ward']
    """
    return files("dtsvm.data").joinpath("sites", f"{name}.csv").read_bytes()
