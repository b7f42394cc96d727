"""A node's TOML file: read with a sentence for every mistake, and written for a new network."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dtsvm.errors import NetworkError, ParameterError, did_you_mean
from dtsvm.prepare.prepared import check_parameters
from dtsvm.problem import Privacy, Settings
from dtsvm.problem.settings import positive, refusal
from dtsvm.runtime.agent.node.names import check_address, check_name, is_task
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.process.credentials import Credentials
from dtsvm.runtime.agent.site.certificates import read_revoked
from dtsvm.runtime.agent.site.level import read_privacy

__all__ = ["AUTO", "Common", "Config", "PrepareConfig", "TaskConfig", "read_config", "to_toml"]

# Settings of `C = "auto"`: every candidate is ½‖w‖² + C Σ hinge, certified as well as in `DTSVMCV`.
AUTO = {"common_reg": 2.0, "specific_reg": 2.0, "tol": 0.05}
CHOSEN = ("common_reg", "specific_reg", "bias")  # by the network, with C

SECTIONS = (
    "name", "network", "listen", "model", "couple", "personal", "tls", "neighbours", "settings",
    "timing", "tasks", "metrics", "prepare", "holdout", "privacy", "class_weight",
    "probability", "status", "vouchers",
)  # fmt: skip


@dataclass(frozen=True)
class TaskConfig:
    """Where a task's rows are."""

    data: Path | None = None
    label: str | None = None
    labels: tuple[Any, ...] | None = None  # negative and positive, or all of several
    features: tuple[str, ...] | None = None
    weight: str | None = None  # the column of rows' weights


@dataclass(frozen=True)
class PrepareConfig:
    """How raw columns become features; see `Preparation`."""

    min_count: int = 10
    missing_columns: str = "refuse"
    kinds: dict[str, str] = field(default_factory=dict)
    sparse: bool = False


@dataclass(frozen=True)
class Config:
    """One node's configuration; paths are made absolute by the folder of the file."""

    path: Path
    name: str
    network: int
    listen: str
    neighbours: dict[str, str]
    tasks: dict[str, TaskConfig]
    settings: Settings
    timing: Timing
    couple: tuple[tuple[str, ...], ...]
    personal: bool
    model: Path
    tls: dict[str, Path]
    metrics: str | None = None
    prepare: PrepareConfig | None = None
    holdout: float = 0.0
    privacy: Privacy = field(default_factory=Privacy)
    class_weight: Any = None
    probability: bool = False
    chooses: bool = False
    status: str | tuple[str, ...] = "all"
    vouchers: int = 1  # nodes that must vouch for what is taken over

    def may_ask(self, name: str, neighbours: Iterable[str]) -> bool:
        """Whether the node of this name is told the status over the network."""
        if self.status == "neighbours":
            return name in neighbours
        return self.status == "all" or name in self.status

    @property
    def shared(self) -> dict[str, Any]:
        """What stands under [settings], the same at every node."""
        found = asdict(self.settings)
        if self.privacy.candidates:
            return {**found, "C": "auto"}
        if not self.chooses:
            return found
        return {**{k: v for k, v in found.items() if k not in CHOSEN}, "C": "auto"}

    @property
    def agrees(self) -> bool:
        """Whether nodes agree on something before the first round; the same at every node."""
        return self.prepare is not None or self.class_weight is not None

    @property
    def folder(self) -> Path:
        """Where the file is, and the checkpoint and the control socket."""
        return self.path.parent

    def credentials(self) -> Credentials:
        """Read the certificates, and who is let in no more."""
        ca, certificate, key = (self._read(name) for name in ("ca", "certificate", "key"))
        mode = self.tls["key"].stat().st_mode & 0o777
        if mode & 0o077:
            raise NetworkError(
                f"{self.tls['key']} can be read by others (mode {mode:04o}). "
                f"Make it yours alone: chmod 600 {self.tls['key']}"
            )
        revoked: frozenset[int] = frozenset()
        if "revoked" in self.tls and self.tls["revoked"].exists():
            revoked = read_revoked(self.tls["revoked"], ca)
        return Credentials(ca, certificate, key, revoked)

    def _read(self, name: str) -> bytes:
        if name not in self.tls:
            raise NetworkError(f"{self.path} has no '{name}' under [tls].")
        try:
            return self.tls[name].read_bytes()
        except OSError as error:
            raise NetworkError(f"{self.tls[name]} cannot be read: {error.strerror}.") from error


def read_config(path: Path) -> Config:
    """Read a node's TOML file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NetworkError(f"There is no file {path}. Check the path.") from None
    except IsADirectoryError:
        raise NetworkError(f"{path} is a folder. Name its file: {path / 'node.toml'}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise NetworkError(f"{path} cannot be read: {error}.") from error
    except RecursionError as error:
        raise NetworkError(f"{path} is nested too deeply. Write lists and tables flat.") from error
    for name in content:
        if name not in SECTIONS:
            raise NetworkError(f"{path} has an entry {name!r}. {did_you_mean(name, SECTIONS)}")
    for name in ("name", "network", "listen", "tasks"):
        if name not in content:
            raise NetworkError(f"{path} lacks the entry {name!r}.")
    folder = path.absolute().parent
    tasks = {str(t): _task(path, t, given, folder) for t, given in content["tasks"].items()}
    couple = content.get("couple", "all")
    privacy = read_privacy(path, content)
    return Config(
        path=path.absolute(),
        name=check_name(content["name"]),
        network=_network(path, content["network"]),
        listen=check_address(content["listen"]),
        neighbours=_neighbours(path, content["name"], content.get("neighbours", {})),
        tasks=tasks,
        settings=_settings(path, content.get("settings", {}), privacy),
        timing=_timing(path, content.get("timing", {})),
        couple=(tuple(tasks),) if couple == "all" else tuple(tuple(group) for group in couple),
        personal=bool(content.get("personal", False)),
        model=folder / content.get("model", "model.json"),
        tls={name: folder / str(file) for name, file in content.get("tls", {}).items()},
        metrics=check_address(content["metrics"]) if "metrics" in content else None,
        prepare=_prepare(path, content["prepare"]) if "prepare" in content else None,
        privacy=privacy,
        holdout=_holdout(path, content.get("holdout", 0.0)),
        class_weight=_class_weight(path, content.get("class_weight")),
        probability=_is_true(path, "probability", content.get("probability", False)),
        chooses=_chooses(content),
        status=_status(path, content.get("status", "all")),
        vouchers=_vouchers(path, content.get("vouchers", 1)),
    )


def _vouchers(path: Path, given: Any) -> int:
    if type(given) is not int or not 1 <= given <= 16:
        raise refusal(str(path), "vouchers", "a whole number from 1 to 16", given)
    return given


def _status(path: Path, given: Any) -> str | tuple[str, ...]:
    if given in ("all", "neighbours"):
        return str(given)
    if not isinstance(given, list):
        raise refusal(str(path), "status", "'all', 'neighbours' or a list of nodes", given)
    return tuple(check_name(name) for name in given)


def _is_true(path: Path, name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise refusal(str(path), name, "true or false", given)
    return given


def _chooses(content: dict[str, Any]) -> bool:
    """Whether the network chooses C and company; under differential privacy it is C alone."""
    return content.get("settings", {}).get("C") == "auto" and not _is_dp(content)


def _is_dp(content: dict[str, Any]) -> bool:
    privacy = content.get("privacy", {})
    return isinstance(privacy, dict) and privacy.get("level") == "dp"


def _class_weight(path: Path, given: Any) -> Any:
    """Return "balanced", or a number for each label, or for each label of each task."""
    if given is None or given == "balanced":
        return given
    if not isinstance(given, dict) or not given:
        raise refusal(str(path), "class_weight", "'balanced' or a table of numbers", given)
    for name, value in given.items():
        for label, number in value.items() if isinstance(value, dict) else [(name, value)]:
            positive(str(path), f"class_weight of {label}", number)
    return given


def _holdout(path: Path, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1:
        raise ParameterError(f"{path}: holdout must be a share from 0 to 1. Got {given!r} instead.")
    return float(given)


def _prepare(path: Path, given: Any) -> PrepareConfig:
    known = [f.name for f in fields(PrepareConfig)]
    for name in given if isinstance(given, dict) else [given]:
        if name not in known:
            raise ParameterError(f"{path}: [prepare] has {name!r}. {did_you_mean(name, known)}")
    found = PrepareConfig(**given)
    check_parameters(found.min_count, found.missing_columns)
    return found


def _neighbours(path: Path, name: str, given: dict[str, Any]) -> dict[str, str]:
    names = [check_name(other) for other in given]
    if len({other.casefold() for other in [name, *names]}) <= len(names):
        raise NetworkError(
            f"{path}: node {name!r} and its neighbours {', '.join(names)} must differ, "
            "and not in case only."
        )
    return {other: check_address(address) for other, address in given.items()}


def _network(path: Path, text: Any) -> int:
    try:
        return int(text, 16) % 2**64
    except (TypeError, ValueError):
        raise NetworkError(f"{path}: the network's id {text!r} is not hexadecimal.") from None


def _settings(path: Path, given: dict[str, Any], privacy: Privacy) -> Settings:
    known = [f.name for f in fields(Settings)]
    for name in given:
        if name not in known:
            raise ParameterError(f"{path}: unknown setting {name!r}. {did_you_mean(name, known)}")
    if given.get("C") != "auto":
        return Settings.checked(str(path), **given)
    if privacy.candidates:
        return Settings.checked(str(path), **{**given, "C": privacy.candidates[0]})
    for name in CHOSEN:
        if name in given:
            raise ParameterError(
                f'{path}: with C = "auto" the network chooses {name}, too. Leave it out, or write '
                "a number for C."
            )
    return Settings.checked(str(path), **{**AUTO, **given, "C": 1.0})


def _timing(path: Path, given: dict[str, Any]) -> Timing:
    known = [f.name for f in fields(Timing)]
    for name in given:
        if name not in known:
            raise ParameterError(f"{path}: unknown timing {name!r}. {did_you_mean(name, known)}")
    return Timing(**{name: positive(str(path), name, value) for name, value in given.items()})


def _task(path: Path, task: str, given: Any, folder: Path) -> TaskConfig:
    if not is_task(task):
        raise NetworkError(f"{path}: {task!r} cannot be the name of a task.")
    known = [f.name for f in fields(TaskConfig)]
    for name in given if isinstance(given, dict) else [given]:
        if name not in known:
            raise NetworkError(f"{path}: task {task!r} has {name!r}. {did_you_mean(name, known)}")
    if "data" in given and "label" not in given:
        raise NetworkError(f"{path}: task {task!r} has data, but names no label column.")
    labels, features = given.get("labels"), given.get("features")
    if labels is not None and (len(labels) < 2 or len(set(labels)) != len(labels)):
        raise NetworkError(
            f"{path}: task {task!r} needs two labels, negative and positive, or more of them, "
            "all different."
        )
    return TaskConfig(
        data=folder / given["data"] if "data" in given else None,
        label=given.get("label"),
        labels=tuple(labels) if labels else None,
        features=tuple(features) if features else None,
        weight=given.get("weight"),
    )


@dataclass(frozen=True)
class Common:
    """What all nodes of a network have in common beside their settings."""

    timing: Timing = field(default_factory=Timing)
    couple: Sequence[Sequence[str]] | str = "all"
    personal: bool = False
    prepare: PrepareConfig | None = None
    class_weight: Any = None
    probability: bool = False


def to_toml(
    name: str,
    network: str,
    listen: str,
    neighbours: dict[str, str],
    tasks: dict[str, dict[str, Any]],
    settings: dict[str, Any],
    common: Common | None = None,
) -> str:
    """Write a node's TOML file for `dtsvm network new`, for a person to go on with."""
    common = common or Common()
    lines = [
        f"name = {_text(name)}",
        f"network = {_text(network)}          # the same at every node",
        f"listen = {_text(listen)}",
        'model = "model.json"',
        f'couple = {_value(common.couple):19}# train together: "all", [] or [["a", "b"]]',
        *(["personal = true"] if common.personal else []),
        *_class_weight_lines(common.class_weight),
        *(["probability = true"] if common.probability else []),
        "",
        "[tls]",
        'ca = "ca.pem"',
        'certificate = "node.pem"',
        'key = "node.key"',
        'revoked = "revoked.pem"     # of `dtsvm network revoke`; it need not be there',
        "",
        "[neighbours]",
        *(f"{_text(other)} = {_text(address)}" for other, address in neighbours.items()),
        "",
        "[settings]                  # the same at every node",
        *(f"{key} = {_value(value)}" for key, value in settings.items()),
        "",
        *_prepare_lines(common.prepare),
        "[timing]                    # seconds",
        *(f"{key} = {_value(value)}" for key, value in asdict(common.timing).items()),
    ]
    for task, given in tasks.items():
        lines += ["", f"[tasks.{_text(task)}]"]
        lines += [f"{key} = {_value(value)}" for key, value in given.items()]
    return "\n".join(lines) + "\n"


def _class_weight_lines(chosen: Any) -> list[str]:
    return [] if chosen is None else [f"class_weight = {_value(chosen)}  # the same at every node"]


def _prepare_lines(prepare: PrepareConfig | None) -> list[str]:
    if prepare is None:
        return []
    kinds = ", ".join(f"{_text(k)} = {_text(v)}" for k, v in prepare.kinds.items())
    return [
        "[prepare]                   # columns to features, agreed by all nodes; the same at every",
        f"min_count = {prepare.min_count}",
        f"missing_columns = {_text(prepare.missing_columns)}",
        *([f"kinds = {{ {kinds} }}"] if kinds else []),
        *(["sparse = true"] if prepare.sparse else []),
        "",
    ]


def _text(value: str) -> str:
    """Write a TOML string; whatever is in it stays inside."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_text(str(k))} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)
