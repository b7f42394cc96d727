"""A demo network, a page that shows it, and a browser that looks at it."""

import shutil

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from dtsvm.ui.page.demo import DemoNetwork, mesh
from dtsvm.ui.page.serve import serving

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update"
)


@pytest.fixture
def scene():
    return DemoNetwork(mesh([str(i + 1) for i in range(6)], seed=0), seed=0, speed=1000)


@pytest.fixture
def served(scene):
    with serving(scene) as page:
        yield page


@pytest.fixture(scope="module")
def chromium():
    driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("There is no Chromium here; the page is not looked at in a browser.")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS.split())
        yield browser
        browser.close()
