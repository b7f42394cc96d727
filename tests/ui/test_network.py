import stat
import subprocess
import sys
import tomllib

import pytest

pytest.importorskip("cryptography")

NEW = ["network", "new", "ring", "--nodes", "hospital-a", "hospital-b", "hospital-c",
       "--out", "site"]  # fmt: skip


@pytest.fixture
def site(run, tmp_path):
    run(*NEW)
    return tmp_path / "site"


def config(site, name):
    return tomllib.loads((site / name / "node.toml").read_text())


def test_new_makes_a_folder_a_node_with_what_it_needs(site):
    for name in ("hospital-a", "hospital-b", "hospital-c"):
        files = {path.name for path in (site / name).iterdir()}
        assert files == {"node.toml", "ca.pem", "node.pem", "node.key"}
        assert stat.S_IMODE((site / name / "node.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((site / "ca.key").stat().st_mode) == 0o600
    found = config(site, "hospital-a")
    assert found["neighbours"] == {
        "hospital-b": "127.0.0.1:47002",
        "hospital-c": "127.0.0.1:47003",
    }
    assert found["network"] == config(site, "hospital-b")["network"]
    assert found["tasks"] == {"task": {"data": "rows.csv", "label": "label"}}


def test_new_refuses_a_folder_that_is_in_use_and_names_without_sense(run, site):
    again = run(*NEW, exit_code=1)
    assert "Error: site exists and is not empty. Choose another folder." in again.output
    bad = run("network", "new", "ring", "--nodes", "a/b", "--out", "other", exit_code=1)
    assert "'a/b' cannot be the name of a node" in bad.output


def test_add_makes_the_newcomers_folder_and_its_neighbours_lines(run, site):
    result = run("network", "add", "site", "newcomer", "--link", "hospital-b",
                 "--listen", "127.0.0.1:47009")  # fmt: skip
    assert "dtsvm tell site/hospital-b/node.toml link newcomer 127.0.0.1:47009" in result.output
    assert config(site, "hospital-b")["neighbours"]["newcomer"] == "127.0.0.1:47009"
    new = config(site, "newcomer")
    old = config(site, "hospital-b")
    assert new["neighbours"] == {"hospital-b": "127.0.0.1:47002"}
    assert new["network"] == old["network"]
    assert {k: new["settings"][k] for k in old["settings"]} == old["settings"]
    assert (site / "newcomer" / "node.pem").exists()


def test_an_agent_says_what_is_wrong_with_its_file(run, site):
    path = site / "hospital-a" / "node.toml"
    text = path.read_text()
    for old, new, sentence in [
        ("", "", "There is no file"),
        ('C = "auto"', "C = -1.0", "must be a positive float. Got -1.0 instead."),
        ("tol = 0.05", "tl = 0.05", "unknown setting 'tl'."),
        ("tol = 0.05", 'bias = "mixed"', 'with C = "auto" the network chooses bias, too.'),
        ("[neighbours]", "[neighbors]", "Did you mean 'neighbours'?"),
        ('label = "label"', "", "task 'task' has data, but names no label column."),
        ('key = "node.key"', 'key = "no.key"', "no.key cannot be read"),
    ]:
        path.write_text(text.replace(old, new, 1))
        result = run("agent", path, exit_code=1)
        assert sentence in result.output


def test_insecure_is_for_loopback_only(run, site, files):
    folder = site / "hospital-a"
    (folder / "rows.csv").write_text("a,label\n1.0,1\n2.0,-1\n")
    path = folder / "node.toml"
    path.write_text(path.read_text().replace("127.0.0.1:47002", "192.0.2.1:47002"))
    result = run("agent", path, "--insecure", exit_code=1)
    assert "a node talks on loopback only, not to 192.0.2.1:47002" in result.output


def test_status_and_tell_where_no_agent_runs(run, site):
    assert "not running" in run("status", site / "hospital-a" / "node.toml").output
    result = run("tell", site / "hospital-a" / "node.toml", "status", exit_code=1)
    assert "No agent is running in" in result.output
    wrong = run("tell", site / "hospital-a" / "node.toml", "dance", exit_code=2)
    assert "cannot be told 'dance'" in wrong.output


def test_without_the_extra_help_works_and_agents_say_what_to_install(tmp_path):
    script = (
        "import sys; sys.modules['cryptography'] = sys.modules['google.protobuf'] = None;"
        "from dtsvm.ui import main; main()"
    )

    def call(*args):
        return subprocess.run(
            [sys.executable, "-c", script, *args], capture_output=True, text=True, cwd=tmp_path
        )

    assert "network" in call("--help").stdout
    for args in (
        ["agent", "node.toml"],
        ["network", "new", "ring", "--nodes", "a", "--out", "s"],
        ["demo", "network"],
    ):
        result = call(*args)
        assert result.returncode == 1
        assert 'pip install "dtsvm[agent]"' in result.stderr
