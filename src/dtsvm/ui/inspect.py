"""`dtsvm inspect`: what a model file holds, its weights by column, the largest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.errors import DtsvmError
from dtsvm.prepare import Plan
from dtsvm.problem import Model, Network, Privacy, TaskModel
from dtsvm.svm.model_file import read_model
from dtsvm.ui.show import print_facts, print_json, print_table, share, short

__all__ = ["inspect"]

MOST_WEIGHTS = 12


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--all", "show_all", is_flag=True, help="Show every weight, not the largest alone.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(model: Path, show_all: bool, as_json: bool) -> None:
    """Show what MODEL holds: its weights, and how much its tasks share.

    Weights stand by column, the largest first: "weight" for a feature as it was trained on (a
    number changing by one standard deviation), "per unit" for the column as it is in the file.
    Above 0 speaks for the positive label. "shared" is |w₀| / (|w₀| + |w_t|): 100 % where a task
    has nothing of its own, – where it trained alone. "apart" is how far the node furthest from the
    network's classifier is from it, relative to its size.

    \b
      dtsvm inspect model.json
      dtsvm inspect model.json --all
      dtsvm inspect model.json --json
    """  # noqa: D301
    facts = _describe(read_model(model))
    if as_json:
        print_json({"model": str(model), **facts})
    else:
        _print(facts, show_all)


def _describe(model: Model) -> dict[str, Any]:
    settings = {
        name: [list(pair) for pair in value.items()] if isinstance(value, Mapping) else value
        for name, value in model.settings.items()
    }
    return {
        "method": model.method,
        "settings": settings,
        "columns": {"n_features": model.n_features, **model.columns._asdict()},
        "notes": list((model.preparation or {}).get("notes", [])),
        "privacy": None if model.privacy is None else dict(model.privacy),
        "network": _network(model.network),
        "tasks": [_task(model, one) for one in model.tasks],
        "info": {**asdict(model.info), "status": str(model.info.status)},
    }


def _network(network: Network) -> dict[str, Any]:
    neighbours = [len(network.neighbours(node)) for node in network.nodes]
    return {
        "nodes": list(network.nodes),
        "links": [list(link) for link in network],
        "degree": network.degree,
        "fewest_neighbours": min(neighbours),
        "most_neighbours": max(neighbours),
        "is_connected": network.is_connected,
    }


def _task(model: Model, one: TaskModel) -> dict[str, Any]:
    common = float(np.linalg.norm(one.common_coef))
    specific = float(np.linalg.norm(one.specific_coef))
    both = common + specific
    # A task that trained alone has w₀ in proportion to w_t, which says nothing about sharing.
    is_alone = [one.task] in model.groups
    labels = one.classes[1:] if one.n_classifiers == 1 else one.classes
    return {
        "task": one.task,
        "labels": list(one.classes),
        "nodes": list(one.nodes),
        "common_norm": common,
        "specific_norm": specific,
        "shared": common / both if both and not is_alone else float("nan"),
        "apart": max((_apart(one, own) for own in one.nodes.values()), default=float("nan")),
        "weights": [{"for": label, **_weights(model, one, k)} for k, label in enumerate(labels)],
    }


def _apart(one: TaskModel, own: NDArray[np.float64]) -> float:
    """‖u_v − u‖ / ‖u‖ of one node, u with its bias."""
    whole = np.column_stack([one.coef, one.intercept])
    size = float(np.linalg.norm(whole))
    return float(np.linalg.norm(own - whole)) / size if size else float("nan")


def _weights(model: Model, one: TaskModel, k: int) -> dict[str, Any]:
    """One classifier's weights, the largest first, and its bias in the columns' own units."""
    coef, bias = one.coef[k], float(one.intercept[k])
    own, own_bias = coef, bias
    names = model.columns.features or tuple(f"x{j}" for j in range(model.n_features))
    units = model.columns.units or (None,) * model.n_features
    columns = names
    if model.preparation is not None:
        plan = Plan.from_dict(model.preparation)
        own, own_bias = plan.original(coef, bias)
        columns = tuple(feature.column for feature in plan.features)
    order = np.argsort(-np.abs(coef), kind="stable").tolist()
    return {
        "intercept": own_bias,
        "features": [
            {
                "feature": names[j],
                "column": columns[j],
                "unit": units[j],
                "weight": float(coef[j]),
                "per_unit": float(own[j]),
            }
            for j in order
        ],
    }


def _print(facts: dict[str, Any], show_all: bool) -> None:
    settings = {name: value for name, value in facts["settings"].items() if value is not None}
    columns = facts["columns"]
    print_facts(
        {
            "method": facts["method"],
            "settings": ", ".join(f"{name}={_word(value)}" for name, value in settings.items()),
            "features": f"{columns['n_features']:,}{_listed(columns['features'] or [])}",
            "network": _word_network(facts["network"]),
            **_word_info(facts["info"]),
            **({"privacy": _word_privacy(facts["privacy"])} if facts["privacy"] else {}),
        }
    )
    for note in facts["notes"]:
        click.echo(note)
    click.echo()
    print_table(
        ["task", "labels", "nodes", "|w₀|", "|w_t|", "shared", "apart"],
        [_line(entry) for entry in facts["tasks"]],
        text_columns=2,
    )
    for entry in facts["tasks"]:
        for one in entry["weights"]:
            click.echo()
            _print_weights(entry, one, len(facts["tasks"]) > 1, show_all)


def _print_weights(
    entry: dict[str, Any], one: dict[str, Any], has_tasks: bool, show_all: bool
) -> None:
    features = one["features"] if show_all else one["features"][:MOST_WEIGHTS]
    title = f"for {one['for']}" + (f" ({entry['task']})" if has_tasks else "")
    rows = [
        [f["feature"], f"{f['weight']:+.4g}", f"{f['per_unit']:+.4g}", f["unit"] or ""]
        for f in features
    ]
    rows.append(["intercept", "", f"{one['intercept']:+.4g}", ""])
    print_table([title, "weight", "per unit", "unit"], rows)
    left = len(one["features"]) - len(features)
    if left:
        click.echo(f"and {left:,} smaller ones: see --all.")


def _word_network(network: dict[str, Any]) -> str:
    n_nodes, n_links = len(network["nodes"]), len(network["links"])
    if n_nodes == 1:
        name = network["nodes"][0]
        return "one node" if name == 0 else f"one node, {name}"
    fewest, most = network["fewest_neighbours"], network["most_neighbours"]
    around = f"{fewest} neighbours each" if fewest == most else f"{fewest} to {most} neighbours"
    return (
        f"{n_nodes:,} nodes, {n_links:,} link{'s' if n_links != 1 else ''}, "
        f"degree {network['degree']:.4g}, {around}"
        + ("" if network["is_connected"] else ", not connected")
    )


def _word_info(info: dict[str, Any]) -> dict[str, str]:
    primal, dual = short(info["primal_residual"]), short(info["dual_residual"])
    return {
        "status": f"{info['status']} after {info['n_rounds']:,} rounds, {info['seconds']:.2f} s",
        "residuals": f"{primal} primal, {dual} dual",
        "objective": f"{short(info['objective'])}, certified gap {short(info['gap'])}",
        "sent": f"{info['messages_sent']:,} messages, {info['bytes_sent']:,} bytes",
    }


def _word_privacy(privacy: dict[str, Any]) -> str:
    """Say the level as it stands in the file, and what it means if it is one of ours."""
    known = {f.name for f in fields(Privacy)}
    try:
        level = Privacy.checked("the model", **{k: v for k, v in privacy.items() if k in known})
    except DtsvmError:
        return str(privacy.get("level", "unknown"))
    if privacy.get("readers_only"):
        return f"dp for readers of the model only, ε = {level.epsilon:g}, δ = {level.delta:g}"
    return f"{level.level}. {level.meaning}"


def _line(entry: dict[str, Any]) -> list[str]:
    return [
        str(entry["task"]),
        " / ".join(str(label) for label in entry["labels"]),
        f"{len(entry['nodes']):,}",
        short(entry["common_norm"]),
        short(entry["specific_norm"]),
        share(entry["shared"]),
        short(entry["apart"]),
    ]


def _listed(names: Any) -> str:
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f": {shown}" if shown else ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
