"""How the documentation is built: offline, every example executed, every warning an error."""

import importlib.metadata
import os
import textwrap
from pathlib import Path

import click

from dtsvm.ui import main

project = "dtsvm"
author = "The dtsvm developers"
release = version = importlib.metadata.version("dtsvm")
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = f"dtsvm {release}"
html_show_copyright = False
exclude_patterns = [
    "_build",
    "commands.rst",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "gallery/**/*.zip",
]
# Headings of other pages are linked by their words, as on any forge.
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_use_ivar = True
napoleon_use_rtype = False

os.environ["COLUMNS"] = "88"  # of tables that commands print
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "thumbnail_size": (400, 260),
    "default_thumb_file": str(Path(__file__).parent / "page.png"),
}


def setup(app):
    """Write what every command says of itself, for the page of parameters."""
    app.connect("builder-inited", lambda _: write_commands(Path(__file__).parent / "commands.rst"))


def write_commands(path):
    """Write the help of all commands as one page."""
    parts = []
    for name, command in commands(main, click.Context(main, info_name="dtsvm", color=False)):
        text = textwrap.indent(command, "   ")
        parts.append(f"``{name}``\n{'~' * (len(name) + 4)}\n\n.. code-block:: text\n\n{text}\n")
    path.write_text("\n".join(parts), encoding="utf-8")


def commands(group, context):
    """Yield name and help of a group's commands, and of theirs."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = click.Context(command, info_name=name, parent=context, max_content_width=88)
        if isinstance(command, click.Group):
            yield from commands(command, inner)
        else:
            yield inner.command_path, command.get_help(inner)
