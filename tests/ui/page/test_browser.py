"""The page in a real browser: what is clicked happens, what is shown is so, nothing is fetched."""

from urllib.parse import urlsplit

import pytest


@pytest.fixture
def page(chromium, served):
    """The demo's page; console errors and requests that leave loopback fail the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(120_000)
    opened = context.new_page()
    wrong, asked = [], []
    opened.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(served.address)
    opened.wait_for_selector("#network .node")
    yield opened
    context.close()
    assert wrong == []
    assert {urlsplit(url).hostname for url in asked if not url.startswith("data:")} == {"127.0.0.1"}


def settled(page, scene):
    """Wait until the network stands still and the page shows it so."""
    page.wait_for_function("""() => document.getElementById("state").textContent === "settled" """)
    assert scene.is_settled
    shown = f"{scene.live.round:,}"
    page.wait_for_function("(r) => document.getElementById('round').textContent === r", arg=shown)


def percent(text):
    return float(text.split("%")[0])


def test_the_numbers_on_the_page_are_the_sessions(page, scene):
    from playwright.sync_api import expect  # here: without it the page is not tested

    settled(page, scene)
    for task, rows in scene.rows.tests.items():
        found = scene.live.risk(task, *rows)
        assert percent(page.inner_text(f"#risk-{task}")) == round(100 * found.mean, 1)
    page.locator("#table").scroll_into_view_if_needed()  # off the screen it is not drawn
    for node in scene.live.nodes:
        row = page.locator("#nodes-body tr", has=page.get_by_role("button", name=node, exact=True))
        cells = row.locator("td")
        expect(cells).to_have_count(3 + len(scene.rows.tests))
        for k, (task, rows) in enumerate(scene.rows.tests.items()):
            risk = 100 * scene.live.risk(task, *rows).nodes[node]
            count = scene.live.row_counts(task)[node]
            # The table follows the numbers a little later.
            expect(cells.nth(3 + k)).to_have_text(f"{risk:.1f} % ({count})")
    assert float(page.inner_text("#gap")) == pytest.approx(scene.live.info.gap, rel=0.06)


def test_a_node_is_painted_in_the_colour_of_its_risk(page, scene):
    settled(page, scene)
    risk = scene.live.risk("3v6", *scene.rows.tests["3v6"]).nodes["2"]
    painted, wanted = page.evaluate(
        """async (risk) => {
             const { colourAt } = await import("/static/network.js");
             const canvas = document.querySelector("#network canvas");
             const core = document.querySelector("[data-node='2'] .core").getBoundingClientRect();
             const all = canvas.getBoundingClientRect(), ratio = canvas.width / all.width;
             const x = core.x + core.width / 2 - all.x, y = core.y + core.height / 2 - all.y;
             const { data } = canvas.getContext("2d").getImageData(ratio * x, ratio * y, 1, 1);
             return [`rgb(${[...data.slice(0, 3)].join(",")})`, colourAt(2 * risk)];
           }""",
        risk,
    )
    assert painted == wanted


def test_a_node_is_killed_and_revived_by_clicks(page, scene):
    settled(page, scene)
    page.locator("[data-node='3']").click()
    page.click("button[data-do=kill]")
    page.wait_for_selector("[data-node='3'].gone")
    assert "3" not in scene.live.nodes
    settled(page, scene)
    page.click("button[data-do=revive]")
    page.wait_for_selector("[data-node='3']:not(.gone)")
    assert "3" in scene.live.nodes
    settled(page, scene)
    page.wait_for_selector("#events >> text=node 3 is back")
    assert page.locator("#events li").count() == 2


def test_coupling_is_a_tick_and_a_click_and_the_risk_goes_to_the_optimum(page, scene):
    settled(page, scene)
    page.check("#task-list input[value='3v6']")
    page.check("#task-list input[value='8v9']")
    page.click("button[data-do=couple]")
    page.wait_for_selector("text=3v6 with 8v9")
    assert ["3v6", "8v9"] in scene.live.groups
    settled(page, scene)
    shown = percent(page.inner_text("#risk-3v6"))
    assert shown == pytest.approx(100 * scene.optimum["3v6"], abs=2)


def test_a_poisoned_node_is_marked_and_can_be_healed(page, scene):
    settled(page, scene)
    page.select_option("#node", "4")
    page.click("button[data-do=poison]")
    page.wait_for_selector("[data-node='4'].poisoned")
    assert scene.liars == {"4"}
    settled(page, scene)
    page.click("button[data-do=heal]")
    page.wait_for_selector("[data-node='4']:not(.poisoned)")
    settled(page, scene)


def test_links_newcomers_and_losses_are_a_click_away(page, scene):
    settled(page, scene)
    page.click("button[data-do=add]")
    page.wait_for_selector("[data-node='7']")
    page.select_option("#node", "7")
    free = next(v for v in "23456" if v not in scene.live.network.neighbours("7"))
    page.select_option("#other", free)
    page.click("button[data-do=link]")
    page.wait_for_selector(f"#events >> text=link: 7 and {free}")
    page.click("button[data-do=unlink]")
    page.wait_for_selector(f"#events >> text=unlink: 7 and {free}")
    page.evaluate(
        """() => { const slide = document.getElementById("loss"); slide.value = 30;
                   slide.dispatchEvent(new Event("change")); }"""
    )
    page.wait_for_selector("#events >> text=30 % of all messages")
    assert scene.live._memory.loss == 0.3


def test_a_refusal_is_said_aloud_and_kept(page, scene):
    linked = scene.live.network.neighbours("1")[0]
    page.select_option("#node", "1")
    page.select_option("#other", linked)
    page.click("button[data-do=link]")
    sentence = f"Nodes '1' and '{linked}' are linked already."
    page.wait_for_selector(f'#refused >> text="{sentence}"')
    assert page.inner_text("#said[role=alert]") == f"Refused: {sentence}"


def test_nodes_can_be_chosen_by_keyboard(page):
    page.locator("[data-node][tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-node='2'].selected")
    assert page.input_value("#node") == "2"
    assert page.get_attribute("[data-node='2']", "aria-pressed") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_in_light_and_dark(chromium, served, scheme):
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})
    phone = context.new_page()
    phone.goto(served.address)
    phone.wait_for_selector("#network .node")
    phone.wait_for_timeout(500)
    wide = phone.evaluate("document.documentElement.scrollWidth")
    paper = phone.evaluate("getComputedStyle(document.body).backgroundColor")
    context.close()
    assert wide <= 390
    assert paper == ("rgb(243, 244, 246)" if scheme == "light" else "rgb(18, 21, 25)")


def test_every_control_has_a_name(page):
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input")].filter((control) =>
             !control.textContent.trim() && !control.labels?.length
             && !control.getAttribute("aria-label")).map((control) => control.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("section").count() == page.locator("section[aria-labelledby]").count()


def test_without_the_token_the_browser_is_refused(chromium, served):
    context = chromium.new_context()
    stranger = context.new_page()
    answer = stranger.goto(served.base)
    context.close()
    assert answer.status == 403


def test_the_page_says_whether_tasks_should_train_together(page, scene):
    settled(page, scene)
    page.click("button[data-do=advise]")
    page.wait_for_selector("#advice svg")
    sentences = page.locator("#advice p").all_inner_texts()
    assert sentences == [choice.sentence for choice in scene.live.choose().choices_]
    shown = page.get_attribute("#advice [role=img]", "aria-label")
    assert shown.endswith(f"on test rows {100 * scene.advice[0]['unseen']:.1f} %")
