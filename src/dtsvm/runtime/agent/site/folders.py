"""The folders of a network: a node each, with its configuration, certificate and key."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dtsvm.errors import NetworkError
from dtsvm.problem import Network
from dtsvm.runtime.agent.node.names import check_name
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.site.certificates import make_authority, make_certificate, sign
from dtsvm.runtime.agent.site.config import AUTO, Common, PrepareConfig, to_toml

__all__ = ["make_site", "write_folder"]

DEFAULTS = {"C": 1.0, "common_reg": 1.0, "specific_reg": 1.0, "tol": 1e-4}


def make_site(
    out: Path,
    network: Network,
    address: Mapping[str, str],
    tasks: dict[str, dict[str, Any]],
    settings: Mapping[str, Any],
    timing: Timing | None = None,
    prepare: PrepareConfig | None = None,
    **common: Any,
) -> None:
    """Make a folder for each node of a new network, and a CA of its own.

    Parameters
    ----------
    out : Path
        The folder to make; it may exist if it is empty.
    network : Network
        The nodes, by names that certificates can carry, and their links.
    address : mapping of str to str
        Where each node listens, host:port.
    tasks : dict
        What is written under [tasks.…] at every node.
    settings : mapping
        Settings other than `DEFAULTS`.
    timing : Timing, optional
        How long the nodes wait.
    prepare : PrepareConfig, optional
        How columns become features; without it they are taken as they are.
    **common
        What else all nodes have in common, as in `Common`.
    """
    names = [check_name(name) for name in network.nodes]
    if len({name.casefold() for name in names}) != len(names):
        raise NetworkError(f"Nodes must differ, and not in case only: {', '.join(names)}.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise NetworkError(f"{out} exists and is not empty. Choose another folder.")
    out.mkdir(parents=True, exist_ok=True)
    identity = secrets.token_hex(8)
    defaults = {"C": "auto", "tol": AUTO["tol"]} if settings.get("C") == "auto" else DEFAULTS
    make_authority(out, identity)
    for name in names:
        around = {str(other): address[str(other)] for other in network.neighbours(name)}
        text = to_toml(
            name, identity, address[name], around, tasks, {**defaults, **settings},
            Common(timing or Timing(), prepare=prepare, **common),
        )  # fmt: skip
        write_folder(out, name, text)


def write_folder(site: Path, name: str, text: str, request: Path | None = None) -> None:
    """Make one node's folder: its configuration, and a certificate of the site's authority.

    With a signing request the key stays where it is; the folder gets none.
    """
    folder = site / name
    folder.mkdir(mode=0o700)
    if request is None:
        make_certificate(site, folder, name)
    else:
        asked = sign(site, request, folder / "node.pem")
        if asked != name:
            raise NetworkError(f"{request} asks for the name {asked!r}, not for {name!r}.")
        (folder / "ca.pem").write_bytes((site / "ca.pem").read_bytes())
    (folder / "node.toml").write_text(text, encoding="utf-8")
