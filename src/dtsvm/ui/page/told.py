"""What agents tell of choosing and of their neighbours, in the page's words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtsvm.ui.show import choosing_words, short

__all__ = ["choices_of", "how_far", "refusals_of", "settings_of", "state_of"]

Status = dict[str, Any]
MEETING = "The agents meet; then they choose C, coupling and company by themselves."
STAGES = {
    None: "what nodes have counted is added up.",
    "folds": "each candidate trains on a part of the rows, to be judged by the others; {done} of "
    "{of} are certified.",
    "all rows": "what was chosen trains on all rows; {done} of {of} are certified.",
}
CHOSEN = "C, coupling and company were chosen by the agents, on rows held out at every node."


def state_of(status: Status) -> tuple[str, str]:
    """Return what a node does, in a word, and how far it is.

    Examples
    --------
    >>> choosing = {"tracks": 31, "certified": 12, "times_begun": 1}
    >>> state_of({"is_settled": False, "round": 40, "choosing": choosing})
    ('choosing', '(12 of 31)')
    """
    if status["is_settled"]:
        return "settled", ""
    if "choosing" in status:
        word, _, detail = choosing_words(status["choosing"]).partition(" ")
        return word, detail
    return ("training" if status["round"] else "meeting"), ""


def how_far(statuses: Iterable[Status]) -> dict[str, Any] | None:
    """Return a sentence on how far choosing is, with the share of this stage that is done.

    The node that is furthest behind counts; None where nobody chooses.
    """
    found = [status["choosing"] for status in statuses if "choosing" in status]
    if not found:
        return None
    if all(one["is_done"] for one in found):
        return {"sentence": CHOSEN + _again(found), "done": 1, "of": 1}
    if not all(one["times_begun"] for one in found):
        return {"sentence": MEETING, "done": 0, "of": 1}
    behind = min(
        (one for one in found if not one["is_done"]),
        key=lambda one: (one["questions"], one["certified"]),
    )
    done, of = behind["certified"], behind["tracks"]
    said = STAGES[behind["on"]].format(done=done, of=of)
    return {"sentence": f"Choosing: {said}{_again(found)}", "done": done, "of": max(of, 1)}


def _again(found: list[dict[str, Any]]) -> str:
    most = max(one["times_begun"] for one in found)
    return f" Begun {most} times, as nodes or rows came or went." if most > 1 else ""


def choices_of(statuses: Iterable[Status]) -> list[dict[str, Any]]:
    """Return the choice that stands, a row a task; it is the same at every node that has one."""
    for status in statuses:
        found = status.get("choosing", {}).get("choices", [])
        if found:
            return [
                {
                    "task": one["task"],
                    "company": one["company"],
                    "sentence": one["sentence"],
                    "alone": one["alone"],
                    "together": one["chosen"],
                    "unseen": None,
                }
                for one in found
            ]
    return []


def settings_of(statuses: Iterable[Status]) -> list[list[str]]:
    """Return name, value and meaning of what was chosen for every task."""
    for status in statuses:
        found = status.get("choosing", {}).get("choices", [])
        if found:
            return [[f"C of {one['task']}", short(one["C"]), _shares(one)] for one in found]
    return []


def _shares(choice: dict[str, Any]) -> str:
    """Word the families that a task's classifier is made of."""
    parts = [f"{100 * share:.0f} % {family}" for family, share in choice["weights"].items()]
    return f"its classifier: {'; '.join(parts)}"


def refusals_of(statuses: Iterable[Status]) -> list[str]:
    """Return a sentence for everything that nodes have refused, and for what troubles them."""
    said = []
    for status in statuses:
        node, reasons = status["node"], status.get("reasons", {})
        barred = status.get("barred", {})
        for other in sorted({*reasons, *barred}):
            end = f" It is not listened to for {barred[other]:.0f} s." if other in barred else ""
            said.append(f"{node} refused {other}: {reasons.get(other, 'barred')}.{end}")
        if status.get("refused"):
            n = status["refused"]
            said.append(f"{node} refused {n:,} {'message' if n == 1 else 'messages'} in all.")
        if status.get("connections_refused"):
            n = status["connections_refused"]
            said.append(f"{node} refused {n:,} {'connection' if n == 1 else 'connections'}.")
        said += [f"{node}: {sentence}" for sentence in status.get("apart", [])]
        if status.get("trouble"):
            said.append(f"{node} is {status['trouble'].rstrip('.')}.")
    return said
