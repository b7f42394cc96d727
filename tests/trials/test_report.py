import json
import re
import sys

import pytest
from click.testing import CliRunner

from dtsvm.errors import MissingExtraError, ParameterError
from dtsvm.trials import picture
from dtsvm.trials.campaign import Campaign, run_campaign
from dtsvm.trials.intervals import Claim, Finding, Verdict, interval
from dtsvm.trials.lead import draw_gains, gains
from dtsvm.trials.tables import Table
from dtsvm.ui.reproduce import reproduce

FILES = {"index.html", "report.json", "claims.csv"}


def run(folder, *options):
    result = CliRunner().invoke(reproduce, [*options, "--out", str(folder)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, run(folder, "fig5", "fig6", "table1", "--repeats", "2", "--jobs", "1")


def test_the_report_has_every_file(report):
    folder, _ = report
    kinds = ("csv", "png", "svg")
    drawn = {f"{name}.{kind}" for name in ("fig5", "fig6", "table1") for kind in kinds}
    lead = {"lead.png", "lead.svg"}
    assert {path.name for path in folder.iterdir()} == FILES | drawn | lead


def test_it_ends_by_saying_where_the_page_is(report):
    folder, result = report
    assert result.stdout.splitlines()[-1] == str(folder / "index.html")


def test_the_page_asks_for_nothing_outside(report):
    page = (report[0] / "index.html").read_text("utf-8")
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    local = re.compile(r"#|data:|[\w.]+\.(csv|png|svg|json)$")
    assert links
    assert all(local.match(link) for link in links)
    assert not re.search(r"@import|url\((?!#)|<script|<img", page)


def test_every_id_in_the_page_is_its_own(report):
    page = (report[0] / "index.html").read_text("utf-8")
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_the_pictures_take_the_pages_colours(report):
    page = (report[0] / "index.html").read_text("utf-8")
    assert "currentColor" in page
    assert picture.INK not in page
    assert picture.PAPER not in page


def test_the_json_tells_how_it_was_made(report):
    facts = json.loads((report[0] / "report.json").read_text("utf-8"))
    assert facts["seed"] == 0
    assert {"dtsvm", "python", "numpy", "scikit-learn"} <= set(facts["versions"])
    assert [e["name"] for e in facts["experiments"]] == ["fig5", "fig6", "table1"]
    assert {claim["verdict"] for claim in facts["claims"]} <= set(Verdict)


def test_two_repeats_decide_no_claim(report):
    facts = json.loads((report[0] / "report.json").read_text("utf-8"))
    assert {claim["verdict"] for claim in facts["claims"]} == {"undecided"}


def test_the_verdicts_fit_a_terminal_of_eighty_columns(report):
    table = report[1].stdout.splitlines()[:-1]
    assert len(table) == 5
    assert max(map(len, table)) <= 80


def test_the_page_tells_the_story_first(report):
    page = (report[0] / "index.html").read_text("utf-8")
    parts = ["When does training together help?", 'aria-label="Risk trained together',
             'id="claims"', "How to read this", 'id="fig5"']  # fmt: skip
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page.count('class="conclusion"') == 4


def test_every_claim_has_a_few_words_for_the_table():
    for result in run_campaign(Campaign(["fig5", "table1"], repeats=1, regime="standard")):
        assert all(0 < len(claim.short) <= 40 for claim in result.claims)


def test_a_setting_is_drawn_once_a_regime_with_its_difference():
    finding = Finding("a − b", interval([-1.0, -2.0, -3.0]), "few rows")
    claims = [Claim("fig5", "It helps.", r, (finding,)) for r in ("paper", "standard")]
    found = gains([*claims, *claims])
    assert [(g.setting, g.regime) for g in found] == [
        ("few rows", "paper"),
        ("few rows", "standard"),
    ]
    assert len(draw_gains(found).axes) == 1


def test_the_same_seed_gives_the_same_bytes_on_any_number_of_processes(report, tmp_path):
    run(tmp_path, "table1", "fig5", "--repeats", "2", "--jobs", "2")
    for name in ("table1.csv", "fig5.csv"):
        assert (tmp_path / name).read_bytes() == (report[0] / name).read_bytes()


def test_another_seed_gives_other_numbers(report, tmp_path):
    run(tmp_path, "fig5", "--repeats", "2", "--jobs", "1", "--seed", "1")
    assert (tmp_path / "fig5.csv").read_bytes() != (report[0] / "fig5.csv").read_bytes()


def test_the_header_of_a_csv_is_stable(report):
    heads = {p.name: p.read_text("utf-8").split("\n")[0] for p in report[0].glob("*.csv")}
    assert heads["table1.csv"] == heads["fig6.csv"] == "regime,repeat,network,node,risk"
    assert heads["fig5.csv"] == "regime,repeat,threes,method,task,risk"
    assert heads["claims.csv"] == ("experiment,claim,regime,finding,mean,low,high,repeats,verdict")


def test_an_unknown_experiment_is_refused_by_name():
    with pytest.raises(ParameterError, match=r"Unknown experiment 'fig22'.*Did you mean 'fig2'"):
        _ = Campaign(["fig22"]).experiments


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dtsvm\[plot\]"'):
        picture.need_matplotlib()


def test_a_table_averages_by_repeat_and_level():
    rows = [(1, "a", 1.0), (1, "a", 3.0), (1, "b", 5.0), (2, "a", 4.0), (2, "b", 7.0)]
    table = Table(["repeat", "kind", "risk"], rows)
    assert table.by_repeat(per="kind").tolist() == [[2.0, 5.0], [4.0, 7.0]]
    assert table.where(kind="b").by_repeat().tolist() == [5.0, 7.0]
