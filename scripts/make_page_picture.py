"""Take docs/page.png anew: tasks coupled, a node that lies, the liar killed, a newcomer.

`python scripts/make_page_picture.py` needs Playwright, Pillow and a Chromium.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from dtsvm.ui.page.demo import DemoNetwork, mesh
from dtsvm.ui.page.serve import serving

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "page.png"
COLOURS = 128


def main() -> None:
    """Do by clicks what a viewer would, and keep the top of the page."""
    scene = DemoNetwork(mesh([str(i + 1) for i in range(12)], seed=0), seed=0, speed=200)
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright, serving(scene) as served:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 772})
        page.goto(served.address)
        _settle(page)
        for small in ("3v6", "5v4"):
            page.check(f"#task-list input[value='{small}']")
            page.check("#task-list input[value='8v9']")
            _press(page, "couple")
        for node, action in (("7", "poison"), ("7", "kill"), ("8", "add")):
            page.select_option("#node", node)
            _press(page, action)
        page.evaluate("() => scrollTo(0, 0)")
        page.wait_for_selector("#said", state="hidden")
        taken = page.screenshot()
        browser.close()
    picture = Image.open(io.BytesIO(taken)).convert("RGB").quantize(COLOURS)
    picture.save(PICTURE, optimize=True)


def _press(page: Any, action: str) -> None:
    page.click(f"button[data-do={action}]")
    _settle(page)


def _settle(page: Any) -> None:
    page.wait_for_timeout(1000)  # charts and buttons follow a little later
    page.wait_for_function("() => document.getElementById('state').textContent === 'settled'")
    page.wait_for_timeout(1000)


if __name__ == "__main__":
    main()
