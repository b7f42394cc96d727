import pytest
from click.testing import CliRunner
from clinics import TRAIN, write_rows

from dtsvm.ui import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call the command line in an empty folder; refuse a traceback."""
    monkeypatch.chdir(tmp_path)

    def call(*args, exit_code=0):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exit_code == exit_code, (result.output, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return call


@pytest.fixture
def files(run, tmp_path):
    """rows.csv and test.csv in the current folder."""
    write_rows(tmp_path / "rows.csv", 90, seed=0)
    write_rows(tmp_path / "test.csv", 40, seed=1)
    return tmp_path


@pytest.fixture
def model(run, files):
    run(*TRAIN, "--network", "ring")
    return files / "model.json"
