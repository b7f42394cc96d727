"""
Three sites' raw files
======================

Three hospitals write the same facts in three ways: another separator, decimal commas, other words
for yes and no, gaps, columns in another order. Columns are matched by name, and means, scales and
categories come from sums over the network.
"""

import subprocess
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())


def shell(line):
    """Run a command in the folder and show what it prints."""
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ {line}\n{done.stdout}")


# %%
# The sample ships; its patients are invented.

shell("dtsvm demo sites --out sites")
shell("head -3 sites/north.csv sites/south.csv sites/west.csv")

# %%
# One command trains both diseases over the ring of the three sites, a fifth of the rows held out.

shell(
    "dtsvm train sites/north.csv sites/south.csv sites/west.csv --label readmitted --task disease "
    "--network ring --holdout 0.2"
)

# %%
# The model is a file that a person can read; new rows are labelled with it.

shell("dtsvm predict model.json sites/new.csv --out answers.csv")
shell("head -4 answers.csv")
shell("dtsvm inspect model.json")
