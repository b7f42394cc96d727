import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import dtsvm
from dtsvm.errors import DataError, did_you_mean
from dtsvm.ui import COMMANDS, main
from dtsvm.ui.group import LazyGroup


def dtsvm_process(*args, **options):
    command = [sys.executable, "-c", "from dtsvm.ui import main; main(prog_name='dtsvm')", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_version_is_the_packages(run):
    assert run("--version").stdout == f"dtsvm, version {dtsvm.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(run, name):
    text = run(name, "--help").stdout
    assert f"dtsvm {name} " in text.split("Options:")[0].split("Usage:")[1].partition("\n")[2]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="No full device here.")
@pytest.mark.parametrize("args", [["--help"], ["--version"], ["train", "--help"]])
def test_help_that_cannot_be_written_is_one_line(args):
    command = [sys.executable, "-c", "from dtsvm.ui import main; main()", *args]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "Error: The output cannot be used: No space left on device.\n"


def test_help_lists_the_commands_in_the_order_of_work(run):
    listed = run("--help").stdout.split("Commands:\n")[1].split("\n")
    assert [line.split()[0] for line in listed if line] == list(COMMANDS)


def test_an_unknown_command_is_wrong_usage_with_a_suggestion(run):
    assert run("trian", exit_code=2).stderr.splitlines()[-1] == (
        f"Error: Unknown command 'trian'. {did_you_mean('trian', COMMANDS)}"
    )


def failing(error):
    @click.group(cls=LazyGroup, commands_at={})
    @click.option("--debug", is_flag=True)
    def group(debug):
        pass

    @group.command()
    def fail():
        raise error

    return group


def test_an_error_of_ours_is_one_line():
    result = CliRunner().invoke(failing(DataError("No rows. Add some.")), ["fail"])
    assert (result.exit_code, result.stderr) == (1, "Error: No rows. Add some.\n")


def test_an_unexpected_error_is_one_line_too():
    result = CliRunner().invoke(failing(ZeroDivisionError("oh")), ["fail"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: ZeroDivisionError: oh (unexpected; 'dtsvm --debug …' shows where)\n",
    )


def test_a_full_disk_is_no_riddle():
    result = CliRunner().invoke(failing(OSError(28, "No space left on device")), ["fail"])
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: The output cannot be used: No space left on device.\n",
    )


def test_debug_lets_the_traceback_through():
    error = DataError("No rows. Add some.")
    result = CliRunner().invoke(failing(error), ["--debug", "fail"])
    assert result.exception is error


IMPORTS = """
import json, sys
import sklearn.base
before = set(sys.modules)
from dtsvm.ui import main
main(["train", "--help"], standalone_mode=False)
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
print(json.dumps(sorted(name for name in sys.modules if name.startswith("dtsvm.ui."))))
"""


def test_help_of_one_command_imports_neither_the_others_nor_anything_optional():
    script = [sys.executable, "-c", IMPORTS]
    out = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    added, ours = (json.loads(line) for line in out.splitlines()[-2:])
    assert not {"matplotlib", "pandas", "networkx", "pyarrow", "polars", "grpc"} & set(added)
    names = [
        "compare",
        "group",
        "judging",
        "known",
        "ranks",
        "rows",
        "scores",
        "settings",
        "share_features",
        "shares",
        "show",
        "train",
        "training_rows",
    ]
    assert ours == [f"dtsvm.ui.{name}" for name in names]


def test_a_real_process_prints_the_error_and_no_traceback(tmp_path):
    done = dtsvm_process("inspect", "none.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: There is no file none.json. Check the path.\n"


def test_a_real_process_shows_the_traceback_with_debug(tmp_path):
    done = dtsvm_process("--debug", "inspect", "none.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "dtsvm.errors.ModelFileError: There is no file none.json. Check the path."
    )


def test_commands_can_be_chained_as_a_user_would(model):
    done = dtsvm_process("evaluate", "model.json", "test.csv", "--json", cwd=model.parent)
    assert done.stderr == ""
    assert json.loads(done.stdout)["rows"] == 40


def test_a_terminal_without_greek_letters_shows_their_codes():
    done = dtsvm_process("train", "--help", env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0
    assert "\\u03b5" in done.stdout


def test_main_is_the_entry_point():
    assert main.name == "main"
