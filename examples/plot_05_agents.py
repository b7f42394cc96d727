"""
Real agents, one killed
=======================

A whole network of processes on this machine: mutual TLS between neighbours, no centre. A node is
killed without warning, the others go on, it comes back from its checkpoint, and all end where a
simulation on the very same rows ends.
"""

import subprocess
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp()) / "site"
done = subprocess.run(
    ["dtsvm", "demo", "network", "--nodes", "4", "--out", str(folder), "--seconds", "300"],
    capture_output=True,
    text=True,
    check=True,
)
print(done.stdout.replace(str(folder), "site"))

# %%
# Every node has its own folder, and writes the model it would use.

for path in sorted(folder.glob("node-1/*")):
    print(path.relative_to(folder))
