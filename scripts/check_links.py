"""Look whether every link of a built site leads somewhere, and whether it loads only itself.

python scripts/check_links.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what a tag links to, loads, and is called."""
        given = dict(attrs)
        self.anchors.update(given[key] for key in ("id", "name") if given.get(key))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and given.get("href") and given.get("rel") == "stylesheet":
            self.loaded.append(given["href"])
        self.loaded += [v for k, v in attrs if (tag, k) in LOADED and v]


def problems(site):
    """Yield a sentence for every link that leads nowhere and everything loaded from elsewhere."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        here = path.relative_to(site)
        for link in page.loaded:
            if urlsplit(link).netloc:
                yield f"{here} loads {link}, which is elsewhere."
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{here} links to {link}, which is not there."
            elif target in pages and unquote(parts.fragment) not in {"", *pages[target].anchors}:
                yield f"{here} links to {link}, where no such heading is."


def main(folder):
    """Check a site; say what is wrong with it, or that nothing is."""
    site = Path(folder).resolve()
    if not any(site.rglob("*.html")):
        sys.exit(f"There is no built site in {site}. Build it first: make docs")
    found = sorted(set(problems(site)))
    for sentence in found:
        print(sentence)
    if found:
        sys.exit(1)
    print(f"{site / 'index.html'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
