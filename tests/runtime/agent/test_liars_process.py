"""Lying neighbours as real processes, mutual TLS: a few of `python -m benchmarks.agent_attacks`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIES = ["values ten times as large", "garbage", "offsets out of nowhere"]


@pytest.mark.slow
def test_honest_processes_are_certified_at_their_own_optimum_after_a_liar():
    words = [sys.executable, "-m", "benchmarks.agent_attacks", "--shape", "ring"]
    words += ["--patience", "600", *LIES]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"alive (\w+) .*off (\S+) .*memory\s+(\S+) MB .*log (\S+) kB", ran.stdout)
    assert len(found) == len(LIES), ran.stdout + ran.stderr
    print(ran.stdout)
    for is_alive, off, memory, log in found:
        assert is_alive == "True"
        assert float(off) < 1e-2
        assert float(memory) < 20.0
        assert float(log) < 50.0
