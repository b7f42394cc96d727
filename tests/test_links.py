"""Documents name files that are there, and the examples are as many as promised."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
BUILT = {"gallery/index.rst"}  # made by `make docs`


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file(path):
    links = [link for link in LINK.findall(path.read_text()) if "://" not in link]
    missing = [link for link in links if link not in BUILT and not (path.parent / link).exists()]
    assert missing == []


INCLUDED = re.compile(r"^```\{literalinclude\} (\S+)\n:pyobject: (\w+)$", re.MULTILINE)
SHOWN = INCLUDED.findall((ROOT / "docs" / "mathematics.md").read_text())


@pytest.mark.parametrize(("file", "name"), SHOWN, ids=[name for _, name in SHOWN])
def test_the_mathematics_shows_functions_that_are_there(file, name):
    source = (ROOT / "docs" / file).read_text()
    assert re.search(rf"^(def|class) {name}\b", source, re.MULTILINE)


def test_the_readme_is_short_and_shows_the_page():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert "](docs/page.png)" in text


def test_the_gallery_has_ten_examples_each_with_a_heading():
    examples = sorted((ROOT / "examples").glob("*.py"))
    assert len(examples) >= 10
    for path in examples:
        title, rule = path.read_text().splitlines()[1:3]
        assert rule == "=" * len(title), path.name


def test_the_version_is_the_same_everywhere():
    project = (ROOT / "pyproject.toml").read_text()
    version = re.search(r'^version = "([^"]+)"$', project, re.MULTILINE)[1]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
