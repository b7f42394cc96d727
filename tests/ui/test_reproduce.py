import importlib

from click.testing import CliRunner

module = importlib.import_module("dtsvm.ui.reproduce")


def test_a_first_look_is_small_where_nothing_was_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "VARIANT", "python")
    call = ["--quick", "--repeats", "1", "--jobs", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(module.reproduce, ["all", *call])
    assert result.exit_code == 0, result.output
    assert "Uncompiled, a first look is small: table1 and fig6, 1 repeats each." in result.output
    assert {path.stem for path in tmp_path.glob("*.csv")} == {"claims", "table1", "fig6"}
