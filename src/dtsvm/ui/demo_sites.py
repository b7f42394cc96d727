"""`dtsvm demo sites`: the bundled sample of three hospitals' files, to try things on."""

from __future__ import annotations

from pathlib import Path

import click

from dtsvm.data.files import write_atomically
from dtsvm.data.sample import SITES, read_site
from dtsvm.errors import DtsvmError

__all__ = ["sites"]


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("sites"), show_default=True,
              help="Folder to make.")  # fmt: skip
def sites(out: Path) -> None:
    """Write the sample: three hospitals' files, each messy in its own way, and new rows.

    \b
      dtsvm demo sites --out sites/
      dtsvm train sites/north.csv sites/south.csv sites/west.csv \\
          --label readmitted --task disease
    """  # noqa: D301
    for name in SITES:
        if (out / f"{name}.csv").exists():
            raise DtsvmError(f"{out / f'{name}.csv'} is there already. Choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in SITES:
            write_atomically(out / f"{name}.csv", read_site(name))
    except OSError as error:
        reason = error.strerror or error
        raise DtsvmError(f"{out} cannot be written: {reason}. Choose another place.") from error
    listed = ", ".join(f"{name}.csv" for name in SITES)
    click.echo(f"{listed} in {out}")
