"""`dtsvm inspect`: what a model file holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Network
from dtsvm.svm.model_file import load_model
from dtsvm.ui.show import print_facts, print_json, print_table, share, short

__all__ = ["inspect"]


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(model: Path, as_json: bool) -> None:
    """Show what MODEL holds, and how much its tasks share.

    "shared" is |w₀| / (|w₀| + |w_t|): 100 % where a task has nothing of its own, – where it trained
    alone. "apart" is how far the node furthest from the network's classifier is from it, relative
    to its size.

    \b
      dtsvm inspect model.json
      dtsvm inspect model.json --json
    """  # noqa: D301
    facts = _describe(load_model(model))
    if as_json:
        print_json({"model": str(model), **facts})
    else:
        _print(facts)


def _describe(estimator: Any) -> dict[str, Any]:
    settings = estimator.get_params(deep=False)
    for name in ("network", "callback"):
        settings.pop(name, None)
    if isinstance(settings["positive"], dict):
        settings["positive"] = [list(pair) for pair in settings["positive"].items()]
    return {
        "method": type(estimator).__name__,
        "settings": settings,
        "columns": {"n_features": estimator.n_features_in_, **estimator.columns_._asdict()},
        "network": _network(estimator.network_),
        "tasks": [_task(estimator, t) for t in range(len(estimator.tasks_))],
        "info": {**asdict(estimator.info_), "status": str(estimator.info_.status)},
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


def _task(estimator: Any, t: int) -> dict[str, Any]:
    negative, positive = estimator.task_classes_[t].tolist()
    parts = np.broadcast_to(estimator.common_coef_, estimator.coef_.shape)
    common = float(np.linalg.norm(parts[t]))
    specific = float(np.linalg.norm(estimator.specific_coef_[t]))
    both = common + specific
    task = estimator.tasks_.tolist()[t]
    # A task that trained alone has w₀ in proportion to w_t, which says nothing about sharing.
    is_alone = [task] in estimator._groups(estimator.tasks_.tolist())
    is_held = ~np.isnan(estimator.node_intercept_[:, t])
    return {
        "task": task,
        "negative": negative,
        "positive": positive,
        "nodes": estimator.nodes_[is_held].tolist(),
        "common_norm": common,
        "specific_norm": specific,
        "shared": common / both if both and not is_alone else float("nan"),
        "apart": _apart(estimator, t, is_held),
    }


def _apart(estimator: Any, t: int, is_held: NDArray[np.bool_]) -> float:
    """max_v ‖u_v − u‖ / ‖u‖ over the nodes that hold the task, u with its bias."""
    whole = np.append(estimator.coef_[t], estimator.intercept_[t])
    by_node = np.column_stack(
        [estimator.node_coef_[is_held, t], estimator.node_intercept_[is_held, t]]
    )
    size = float(np.linalg.norm(whole))
    furthest = float(np.linalg.norm(by_node - whole, axis=1).max())
    return furthest / size if size else float("nan")


def _print(facts: dict[str, Any]) -> None:
    settings = {name: value for name, value in facts["settings"].items() if value is not None}
    columns = facts["columns"]
    print_facts(
        {
            "method": facts["method"],
            "settings": ", ".join(f"{name}={_word(value)}" for name, value in settings.items()),
            "features": f"{columns['n_features']:,}{_listed(columns['features'] or [])}",
            "network": _word_network(facts["network"]),
            **_word_info(facts["info"]),
        }
    )
    click.echo()
    print_table(
        ["task", "labels", "nodes", "|w₀|", "|w_t|", "shared", "apart"],
        [_line(entry) for entry in facts["tasks"]],
        text_columns=2,
    )


def _word_network(network: dict[str, Any]) -> str:
    fewest, most = network["fewest_neighbours"], network["most_neighbours"]
    around = f"{fewest} neighbours each" if fewest == most else f"{fewest} to {most} neighbours"
    return (
        f"{len(network['nodes']):,} nodes, {len(network['links']):,} links, "
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


def _line(entry: dict[str, Any]) -> list[str]:
    return [
        str(entry["task"]),
        f"{entry['negative']} / {entry['positive']}",
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
