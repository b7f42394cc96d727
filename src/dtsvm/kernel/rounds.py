"""Everything compiled: one agent's problem, the step, checks, the certificate, and their loop.

`rounds.pxd` beside it gives the C types; without a compiler this file runs as it stands. In order:

    records      rows, agents, link ends, sets of agents, snapshots, sums, a job
    an agent     its box QP by dual coordinate descent, with screening
    the step     x_a = argmin …, q[a→b] = 2 ρ x_a − z[a→b], z ← (1 − κ) z + κ q
    a check      measure → total → decide → apply: penalties, leaps, gains
    certificate  objective and dual bound from sums
    the loop     rounds until the answer is certified, or somebody should look up

It is one module because only inside one does a C compiler inline, and every order of additions is
written out, so that the bits are the same in every build and as plain Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import cython
except ImportError:  # nothing is compiled, and nothing can be
    from dtsvm.kernel import shadow as cython

if cython.compiled:
    from cython.cimports.dtsvm.kernel.cpu import dtsvm_has_avx2
    from cython.cimports.libc.math import fabs, floor, log10, sqrt
    from cython.cimports.libc.string import memcpy
else:
    from math import fabs, floor, log10, sqrt

__all__ = [
    "Across",
    "Agents",
    "Ends",
    "Job",
    "Past",
    "Rows",
    "Sets",
    "Sums",
    "Way",
    "Work",
    "agreeing",
    "apply_leap",
    "arrange",
    "average",
    "bound",
    "carry",
    "certify_sets",
    "close_round",
    "conclude",
    "constants",
    "count_blocks",
    "count_round",
    "decide_leap",
    "decide_level",
    "fill_blocks",
    "gap_apart",
    "has_avx2",
    "hear_numbers",
    "is_check_due",
    "is_look_due",
    "is_over",
    "is_whole",
    "keep_estimates",
    "last_check",
    "lean",
    "linked_agents",
    "links_across",
    "local_steps",
    "may_look",
    "mean_of_parts",
    "measure",
    "measure_nodes",
    "measure_set",
    "next_check",
    "next_look_apart",
    "next_snapshot",
    "note_end",
    "order_by",
    "pull",
    "receive",
    "remember",
    "renew",
    "revise",
    "run",
    "run_apart",
    "segments",
    "send",
    "set_graph",
    "snapshot_place",
    "snapshot_plan",
    "solve_rows",
    "squared_norms",
    "step_and_send",
    "sum_of_nodes",
    "take_in",
    "tally_agent",
    "tally_each",
    "teams_without_room",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Flags = NDArray[np.uint8]

INF = float("inf")
AHEAD = 3.0  # a list is made for so many times the last sweep's way

FIRST_CHECK, LAST_CHECK = 10, 10 << 15  # ages at which penalties are balanced: each twice the last
WARM_FIRST = 20  # the first, in a network that was at work before the change and has its level
NEVER = 2**62
MOST_MARKED = 1000  # nodes up to which their pairs are marked in a table
SCALE = 2.5  # ρ ‖x‖ / ‖λ‖ to aim at
TAIL, BAND = 60, 4.0  # from which age on disagreement and movement count, and how far they may lead
MOST, LEAST = 5.0, 1.2  # how far a check believes them, and the least change that is made
BIAS_LEAST, BIAS_MOST = 0.5, 2.0  # how far the bias may go its own way
LEVEL_LEAST, LEVEL_MOST = 0.01, 1000.0  # how far all checks together may lead from the start
HARD = 300  # sweeps in a round that an agent whose bias no link holds should not need
CARE, MOST_CARE = 10, 100  # times the usual sweeps, where residuals grow
TINY = 1e-300

FIRST_APART, GROWTH = 5, 8  # sets apart are looked at an eighth of all rounds later
FIRST_LEAP = 40  # no leap at an earlier check, unless warm
STEPS = 6  # between snapshots
SPAN, WARM_SPAN = 5, 9  # how many tenths of the rounds since the last check they cover
N_PRODUCTS = 21  # of the moves between snapshots, each pair once
N_SHOWN = 6  # squares that links show: see `Ends.residual`
RIDGE = 1e-8
MOST_LEAP = 1e8  # a γ beyond it is out of all measure

# What `Sums` has, in the order in which `cut_sums` takes it
BY_TEAM = ("members", "share", "loss", "slant", "plus", "minus")
WIDE = ("specific", "pull", "room", "positive", "negative")
SCRATCH = ("common", "w", "seen", "dual", "total", "one", "other")


# Records


class Rows:
    """The rows of all agents here: features where they lie, and their numbers by slot.

    Features are dense, (n, p), or sparse, the values of a CSR matrix as one row, or blocks of
    eight, (n_blocks, 8); float64 (`wide`) or float32 (`narrow`). Several slots may lie at the same
    row: folds, and one class against the rest, share what they look at. Without weights, all are 1.
    """

    def __init__(self, X: Any, numbers: dict[str, NDArray[Any]]) -> None:
        self.is_sparse, self.is_blocked = hasattr(X, "indptr"), hasattr(X, "starts")
        values = X.data.reshape(1, -1) if self.is_sparse else X.values if self.is_blocked else X
        if not cython.compiled:
            values = values.astype(np.float64)  # numpy would multiply float32 in float32
        self.is_narrow = values.dtype == np.float32
        self.wide = np.zeros((0, 0)) if self.is_narrow else values
        self.narrow = values if self.is_narrow else np.zeros((0, 0), np.float32)
        self.columns, self.starts = np.zeros(0, np.int32), np.zeros(1, np.int64)
        if self.is_sparse:
            self.columns, self.starts = X.indices, X.indptr
        elif self.is_blocked:
            self.columns, self.starts = X.columns, X.starts
        self.n_features = X.shape[1]
        self.y, self.at, self.dual = numbers["y"], numbers["at"], numbers["dual"]
        self.norms, self.until = numbers["norms"], numbers["until"]
        self.ids, self.listed = numbers["ids"], numbers["listed"]
        self.is_weighted = "weight" in numbers
        self.weight = numbers["weight"] if self.is_weighted else np.zeros(0)


class Agents:
    """The agents here, by slot. Axes: (agent, common or specific, feature with the bias last).

    first_row, n_rows, first_end, n_ends : where in `Rows.ids` and `Ends.ids` an agent's are
    gain : (·, 2, 2), 1/U of the weights and of the bias
    prox : (·, 2), weight that holds an unlinked bias near its last value
    estimate : x. offset : what cut links left behind. pull : X̃ᵀYλ. decision : u = w₀ + w_t
    travel, n_listed, wake : of screening, see `sweep`
    norm : ‖x‖. drift : how far an unlinked bias moved. sweeps : in the last round
    level : (·, 3), see `decide_level`. start : (·, 2), ρ begun with. size : A. C : box of weight 1
    reg : (·, 3), ε of the common and the specific weights, and of the specific bias: 0 if it is
    free, infinite if there is none
    hold, drift_before : of a bias that no link holds, see `loosen`
    care : how many times the usual sweeps an agent may take, see `take_care`
    is_hasty : whether the last ended before its problem was solved. apart : at the last check
    n_parts : 1 while both parts are the same numbers and only the first is kept up: see `are_even`
    """

    def __init__(self, columns: dict[str, NDArray[Any]]) -> None:
        self.used = columns["used"]
        self.first_row, self.n_rows = columns["first_row"], columns["n_rows"]
        self.first_end, self.n_ends = columns["first_end"], columns["n_ends"]
        self.gain, self.prox, self.estimate = columns["gain"], columns["prox"], columns["estimate"]
        self.offset, self.has_offset = columns["offset"], columns["has_offset"]
        self.pull, self.decision, self.travel = (
            columns["pull"],
            columns["decision"],
            columns["travel"],
        )
        self.n_listed, self.wake = columns["n_listed"], columns["wake"]
        self.norm, self.drift, self.sweeps = columns["norm"], columns["drift"], columns["sweeps"]
        self.level, self.start, self.size = columns["level"], columns["start"], columns["size"]
        self.C, self.reg, self.is_relay = columns["C"], columns["reg"], columns["is_relay"]
        self.hold, self.drift_before = columns["hold"], columns["drift_before"]
        self.care, self.is_hasty, self.apart = (
            columns["care"],
            columns["is_hasty"],
            columns["apart"],
        )
        self.n_parts = 2


class Ends:
    """The ends of links: end a→b belongs to a; its twin is b→a, or −1 if b is elsewhere.

    ids : slots, one agent's after the other's. firsts : one end of every link inside this process
    is_wide : same task, so the specific part is agreed on too. is_across : over the network
    penalty : (·, 2), ρ of the weights and of the bias. state : z
    residual : (·, 3, 2), last squared primal and dual residual, of weights and of biases; then
    squared multiplier and squared x of both ends, weights alone
    eta_inside, eta_across : penalties chosen; automatic if not a number
    """

    def __init__(
        self, columns: dict[str, NDArray[Any]], eta_inside: float, eta_across: float
    ) -> None:
        self.ids, self.firsts = columns["ids"], columns["firsts"]
        self.owner, self.twin = columns["owner"], columns["twin"]
        self.is_wide, self.is_across = columns["is_wide"], columns["is_across"]
        self.penalty, self.state = columns["penalty"], columns["state"]
        self.residual = columns["residual"]
        self.eta_inside, self.eta_across = eta_inside, eta_across


class Sets:
    """The agents that must agree, set after set, with their link ends, node by node.

    set_agent, set_node, set_team : set s has entries [s] to [s + 1]
    agents : slots. team : by slot, which of its set's teams (a task's agents) an agent is in
    node_end, node_noted : node v has entries [v] to [v + 1] of `ends` and `noted`
    ends : in the order in which they are added up. noted : where `exchange` notes what those ends
    show that count for the balance
    share : A_t / A by team. total_box : Σ box of a set's rows
    number, node, part : an agent's set, node and team among all, by slot
    is_silent : which sets have ended. ended : (·, 4), how: see `run_apart`
    order : the agents sorted by set, node and task
    most_nodes, most_teams : of one set
    """

    ends: Ints
    noted: Ints
    node_end: Ints
    node_noted: Ints
    set_node: Ints
    set_team: Ints
    team: Ints
    share: Floats
    column: Floats
    total: Floats
    gamma: Floats
    level: Floats
    most_nodes: int
    most_teams: int
    named: Any

    def __init__(self, columns: dict[str, NDArray[Any]], agents: Agents, ends: Ends) -> None:
        self.set_agent, self.agents = columns["set_agent"], columns["agents"]
        self.number, self.node, self.part = columns["number"], columns["node"], columns["part"]
        self.order, self.total_box = columns["order"], columns["total_box"]
        n_sets, n_slots = len(columns["total_box"]), len(columns["part"])
        room = np.zeros(4 * (n_ends_of(ends) + n_sets + 1) + 2 * n_slots, np.int64)
        lay_sets(self, agents, ends, room, np.zeros(len(columns["agents"]) + n_sets))
        self.by_node = np.zeros((self.most_nodes, N_SHOWN + N_PRODUCTS))
        cut_scratch(self, np.zeros(self.most_nodes + N_SHOWN + N_PRODUCTS + STEPS + 3))
        self.certified = np.zeros((n_sets, 2))  # objective and bound
        self.is_silent = np.zeros(n_sets, np.uint8)
        self.ended = np.zeros((n_sets, 4))
        self.named = None

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What others read, and `is_silent`, which they write."""
        if self.named is None:
            self.named = {
                "ends": np.asarray(self.ends), "node_end": np.asarray(self.node_end),
                "set_node": np.asarray(self.set_node), "is_silent": np.asarray(self.is_silent),
                "ended": np.asarray(self.ended),
            }  # fmt: skip
        return self.named


class Past:
    """Snapshots of z by link end and of x by agent, for leaps.

    ages : at which they were taken; −1 if not. z : (snapshots, ends, 2, p + 1), x : likewise.
    kept : x as agents found it, while z leaps
    is_warm : whether the network was at work before it changed
    """

    kept: Floats

    def __init__(self, ages: Ints, z: Floats, x: Floats, is_warm: bool) -> None:
        self.ages, self.z, self.x, self.is_warm = ages, z, x, is_warm
        self.kept = np.zeros(x.shape[1:])


class Sums:
    """What the rows of one set contribute, team by team, and the set's average; bias last.

    share : A_t / A. loss : Σ box · hinge. pull : Σ y λ x̃. plus, minus : Σ λ of either class
    room : Σ min(λ, box − λ) x̃, how far λ may go both ways. slant : Σ y min(λ, box − λ)
    positive, negative : Σ λ x over either class, only of a team that lacks room
    one, other : of one agent, for a team's
    """

    members: Floats
    share: Floats
    loss: Floats
    slant: Floats
    plus: Floats
    minus: Floats
    specific: Floats
    pull: Floats
    room: Floats
    positive: Floats
    negative: Floats
    common: Floats
    w: Floats
    seen: Floats
    dual: Floats
    total: Floats
    one: Floats
    other: Floats
    named: Any

    def __init__(self, n_teams: int, p1: int) -> None:
        self.blocks = (
            np.zeros((len(BY_TEAM), n_teams)),
            np.zeros((len(WIDE), n_teams, p1)),
            np.zeros((len(SCRATCH), p1)),
        )
        cut_sums(self, self.blocks[0], self.blocks[1], self.blocks[2])
        self.named = None
        self.objective = 0.0
        self.bound = 0.0
        self.theta = 0.0
        self.kept_plus = 1.0
        self.kept_minus = 1.0

    @property
    def arrays(self) -> dict[str, Floats]:
        """All of it by name, to read and to write."""
        if self.named is None:
            arrays = (array for block in self.blocks for array in block)
            self.named = dict(zip((*BY_TEAM, *WIDE, *SCRATCH), arrays, strict=True))
        return self.named


class Work:
    """What one agent works on in a round; the next one overwrites it.

    begin, end : of the agent's rows. n_listed, wake, travel : of screening, see `sweep`
    n_slept : rows that fell asleep in a sweep. looks, sweeps, violation : what a solve came to
    is_hasty : whether it ended before it was as good as it should be
    d_weights, d_bias : D. C : box of weight 1
    inflow : Σ z of both parts. shift : m. u, before : u now and before the last sweep
    """

    inflow: Floats
    shift: Floats
    u: Floats
    before: Floats
    begin: int
    end: int
    n_listed: int
    wake: float
    travel: float
    n_slept: int
    looks: int
    sweeps: int
    violation: float
    is_hasty: bool
    d_weights: float
    d_bias: float
    C: float

    def __init__(self, p1: int, most_rows: int) -> None:
        cut_work(self, np.zeros((5, p1)))
        self.slept = np.zeros(max(most_rows, 1), np.int32)  # rows that fell asleep in it


class Across:
    """Link ends whose other end is in another process: what they tell, and what they are told.

    slots : of the ends. told, heard : q of each, (n, 2, p + 1). is_heard : whether it was told one
    in this round. residual : of each when it last was. are_short : whether estimates were as
    `limit` wants them when something was last told.
    """

    def __init__(self, slots: Ints, residual: Floats, p1: int) -> None:
        shape = (len(slots), 2, p1)
        told, heard, is_heard = np.zeros(shape), np.zeros(shape), np.zeros(len(slots), np.uint8)
        self.slots, self.residual, self.is_heard = slots, residual, is_heard
        self.told, self.heard = told, heard
        self.limit(np.zeros(0, np.int64), np.zeros(0))
        self.are_short = True
        self.arrays = {
            "slots": slots, "residual": residual, "told": told, "heard": heard,
            "is_heard": is_heard,
        }  # fmt: skip

    def limit(self, agents: Ints, longest: Floats) -> None:
        """Have these agents' estimates be no longer than that."""
        self.agents, self.longest = agents, longest


class Way:
    """Where the numbers in a neighbour's messages go.

    places : begin and end of each of its values in a message, (n, 2). ends : of `across`, for each
    value, or −1. most : Σ v² up to which it is taken.
    """

    def __init__(self, across: Across, places: Ints, ends: Ints, most: Floats) -> None:
        self.across, self.places, self.ends, self.most = across, places, ends, most


class Job:
    """Rounds to run, and what became of them.

    log : row k is round k: primal and dual residual, sweeps, rows looked at, objective, gap.
    heard : which messages of a round arrive, by (round, link, direction); all if it is empty.
    Rounds end early when the answer is certified to `gap_tol`, or when they have taken `long`.
    """

    def __init__(self, log: Floats, heard: Flags, pace: dict[str, float]) -> None:
        self.log, self.heard = log, heard
        self.shrink, self.floor = pace["shrink"], pace["floor"]
        self.max_sweeps, self.max_free = int(pace["max_sweeps"]), int(pace["max_free"])
        self.kappa, self.has_checks = pace["kappa"], bool(pace["has_checks"])
        self.age, self.begun = int(pace["age"]), int(pace["begun"])
        self.residual_tol, self.gap_tol = pace["residual_tol"], pace["gap_tol"]
        self.next_look = self.first_look = pace["next_look"]
        self.heavy, self.long, self.most = pace["heavy"], pace["long"], int(pace.get("most", 0))
        self.turn = 0  # which set trains, where they train apart
        self.done = 0  # rounds; apart, of that set
        self.looks = 0  # at rows, in the last round
        self.all_looks = 0
        self.is_certified = False  # the last round has a certificate
        self.is_converged = False
        self.primal = 0.0
        self.dual = 0.0
        self.far = 0.0  # of one link's ends, and how far both have moved: squares
        self.moves = 0.0

    @property
    def progress(self) -> tuple[int, float, bool, bool]:
        """Rounds done, when to look next, whether the last is certified, and small enough."""
        return (
            int(self.done),
            float(self.next_look),
            bool(self.is_certified),
            bool(self.is_converged),
        )

    @property
    def last_looks(self) -> int:
        """Rows looked at in the last round."""
        return int(self.looks)

    @last_looks.setter
    def last_looks(self, looks: int) -> None:
        self.looks = looks


def has_avx2() -> bool:
    """Whether the processor can run the build for AVX2; only compiled code can tell."""
    return bool(dtsvm_has_avx2()) if cython.compiled else False


def constants() -> dict[str, float]:
    """Return the constants that the rest of the house needs, too; compiled code hides them."""
    return {
        "NEVER": NEVER,
        "STEPS": STEPS,
        "N_SHOWN": N_SHOWN,
        "N_PRODUCTS": N_PRODUCTS,
        "MOST_LEAP": MOST_LEAP,
        "FIRST_LEAP": FIRST_LEAP,
        "LAST_CHECK": LAST_CHECK,
    }


# An agent


def dense_dot(X: NDArray[Any], i: int, u: Floats) -> float:
    """Row i times u, in eight lanes."""
    s = [0.0] * 8
    p = X.shape[1]
    whole = p - p % 8
    for j in range(0, whole, 8):
        for k in range(8):
            s[k] += X[i, j + k] * u[j + k]
    for j in range(whole, p):
        s[0] += X[i, j] * u[j]
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))


def sparse_dot(values: NDArray[Any], rows: Rows, i: int, u: Floats) -> float:
    """Sparse row i times u, in four lanes."""
    s = [0.0] * 4
    begin, end = rows.starts[i], rows.starts[i + 1]
    whole = end - (end - begin) % 4
    for k in range(begin, whole, 4):
        for j in range(4):
            s[j] += values[0, k + j] * u[rows.columns[k + j]]
    for k in range(whole, end):
        s[0] += values[0, k] * u[rows.columns[k]]
    return (s[0] + s[2]) + (s[1] + s[3])


def n_whole(rows: Rows, i: int) -> int:
    """Where those blocks of row i end that have all their features."""
    begin, end = rows.starts[i], rows.starts[i + 1]
    return end - 1 if begin < end and rows.columns[end - 1] + 8 > rows.n_features else end


def block_dot(values: NDArray[Any], rows: Rows, i: int, u: Floats) -> float:
    """Row i of blocks times u: what `dense_dot` gives, less the zeros it adds."""
    s = [0.0] * 8
    whole = n_whole(rows, i)
    for b in range(rows.starts[i], whole):
        first = rows.columns[b]
        for k in range(8):
            s[k] += values[b, k] * u[first + k]
    for b in range(whole, rows.starts[i + 1]):
        first = rows.columns[b]
        for j in range(first, rows.n_features):
            s[0] += values[b, j - first] * u[j]
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))


def dot(rows: Rows, i: int, u: Floats) -> float:
    """The features of row i times u."""
    if rows.is_blocked:
        if rows.is_narrow:
            return block_dot(rows.narrow, rows, i, u)
        return block_dot(rows.wide, rows, i, u)
    if rows.is_sparse:
        if rows.is_narrow:
            return sparse_dot(rows.narrow, rows, i, u)
        return sparse_dot(rows.wide, rows, i, u)
    if rows.is_narrow:
        return dense_dot(rows.narrow, i, u)
    return dense_dot(rows.wide, i, u)


def dense_add(X: NDArray[Any], i: int, scale: float, out: Floats) -> None:
    for j in range(X.shape[1]):
        out[j] += scale * X[i, j]


def sparse_add(values: NDArray[Any], rows: Rows, i: int, scale: float, out: Floats) -> None:
    for k in range(rows.starts[i], rows.starts[i + 1]):
        out[rows.columns[k]] += scale * values[0, k]


def block_add(values: NDArray[Any], rows: Rows, i: int, scale: float, out: Floats) -> None:
    s = [0.0] * 8  # a block is read before any of it is written: it need not be asked for overlap
    whole = n_whole(rows, i)
    for b in range(rows.starts[i], whole):
        first = rows.columns[b]
        for k in range(8):
            s[k] = out[first + k] + scale * values[b, k]
        for k in range(8):
            out[first + k] = s[k]
    for b in range(whole, rows.starts[i + 1]):
        first = rows.columns[b]
        for j in range(first, rows.n_features):
            out[j] += scale * values[b, j - first]


def add(rows: Rows, i: int, scale: float, out: Floats) -> None:
    """Add the features of row i, times `scale`, to `out`."""
    if rows.is_blocked:
        if rows.is_narrow:
            block_add(rows.narrow, rows, i, scale, out)
        else:
            block_add(rows.wide, rows, i, scale, out)
    elif rows.is_sparse:
        if rows.is_narrow:
            sparse_add(rows.narrow, rows, i, scale, out)
        else:
            sparse_add(rows.wide, rows, i, scale, out)
    elif rows.is_narrow:
        dense_add(rows.narrow, i, scale, out)
    else:
        dense_add(rows.wide, i, scale, out)


def squared_norm(rows: Rows, i: int) -> float:
    """‖x‖² of row i."""
    total = 0.0
    if rows.is_blocked:
        for b in range(rows.starts[i], rows.starts[i + 1]):
            for k in range(8):
                value = rows.narrow[b, k] if rows.is_narrow else rows.wide[b, k]
                total += value * value
        return total
    if rows.is_sparse:
        for k in range(rows.starts[i], rows.starts[i + 1]):
            value = rows.narrow[0, k] if rows.is_narrow else rows.wide[0, k]
            total += value * value
        return total
    for j in range(rows.n_features):
        value = rows.narrow[i, j] if rows.is_narrow else rows.wide[i, j]
        total += value * value
    return total


def squared_norms(rows: Rows, slots: Places) -> None:
    """Set ‖x‖² of the rows in these slots; where these share rows, of every row once."""
    last = 0
    for k in range(slots.shape[0]):
        last = max(last, rows.at[slots[k]])
    known = np.full(last + 1 if last < slots.shape[0] else 0, -1.0)
    for k in range(slots.shape[0]):
        i = slots[k]
        r = rows.at[i]
        if known.shape[0] == 0 or known[r] < 0.0:
            rows.norms[i] = squared_norm(rows, r)
            if known.shape[0] > 0:
                known[r] = rows.norms[i]
        else:
            rows.norms[i] = known[r]


def pull(rows: Rows, slots: Places, out: Floats) -> None:
    """Add X̃ᵀYλ over the rows in these slots to `out`."""
    p = rows.n_features
    for k in range(slots.shape[0]):
        i = slots[k]
        weight = rows.y[i] * rows.dual[i]
        if weight != 0.0:
            add(rows, rows.at[i], weight, out)
            out[p] += weight


def box_of(rows: Rows, i: int, C: float) -> float:
    """The most that λᵢ may be: C times what the row weighs."""
    return C * rows.weight[i] if rows.is_weighted else C


def distance(u: Floats, v: Floats, d_weights: float, d_bias: float) -> float:
    """‖u − v‖ in the metric 1/D, the weights in eight lanes."""
    s = [0.0] * 8
    p = u.shape[0] - 1
    whole = p - p % 8
    for j in range(0, whole, 8):
        for k in range(8):
            s[k] += square(u[j + k] - v[j + k])
    for j in range(whole, p):
        s[0] += square(u[j] - v[j])
    total = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))
    bias = u[p] - v[p]
    return sqrt(total / d_weights + bias * bias / d_bias)


def list_all(rows: Rows, work: Work, first: int) -> None:
    """List every row from `first` on: nobody is left to wake."""
    for k in range(first, work.end):
        rows.listed[work.begin + k - first] = k
    work.n_listed, work.wake = work.end - first, INF


def list_awake(rows: Rows, work: Work, horizon: float) -> None:
    """List the rows that wake up to `horizon`, and note when the next one wakes."""
    work.n_listed, work.wake = 0, INF
    for k in range(work.begin, work.end):
        until = rows.until[rows.ids[k]]
        if until <= horizon:
            rows.listed[work.begin + work.n_listed] = k
            work.n_listed += 1
        else:
            work.wake = min(work.wake, until)


def fall_asleep(rows: Rows, work: Work, k: int, until: float) -> None:
    """Let a row at its bound sleep until u has travelled so far."""
    rows.until[rows.ids[k]] = until
    work.slept[work.n_slept] = k
    work.n_slept += 1


def sweep(rows: Rows, work: Work) -> float:
    """Minimise over each λᵢ that is awake; return the worst violation.

    The agent's problem, with D = g₀ + g_t its gains (one number for the weights, one for the bias),

        minimise over 0 ≤ λ ≤ box    ½ λᵀ Y X̃ D X̃ᵀ Y λ − (1 − Y X̃ m)ᵀ λ

    has the gradient y xᵀu − 1 with u = D X̃ᵀYλ + m, so (Hsieh et al., 2008)

        λᵢ ← clip(λᵢ − (yᵢ xᵢᵀu − 1) / Qᵢᵢ, 0, box),   u ← u + D xᵢ yᵢ Δλᵢ,   Qᵢᵢ = D_w ‖xᵢ‖² + D_b

    Screening (Ogawa, Suzuki & Takeuchi, 2013): a row at a bound with some slack is not looked at
    again until u has travelled far enough to use it up: |xᵀΔu| ≤ ‖x‖_D ‖Δu‖_{1/D}, so this skips
    work, never accuracy. A list names the rows that are awake or soon will be; every row is asked
    in its turn, listed or not, as soon as u has travelled far enough: the list changes no bit. A
    violation is measured as the way u would go to mend it, |yᵢ xᵢᵀu − 1| / √Qᵢᵢ.
    """
    q = 0
    is_whole_list = True
    p = rows.n_features
    violation, travel = 0.0, work.travel
    work.looks = work.n_slept = 0
    if travel >= work.wake:
        list_all(rows, work, work.begin)
    while q < work.n_listed:
        k = rows.listed[work.begin + q]
        q += 1
        i = rows.ids[k]
        if travel < rows.until[i]:
            continue
        work.looks += 1
        r = rows.at[i]
        y, old, box = rows.y[i], rows.dual[i], box_of(rows, i, work.C)
        slope = y * (dot(rows, r, work.u) + work.u[p]) - 1.0
        curvature = work.d_weights * rows.norms[i] + work.d_bias
        root = sqrt(curvature)
        way = fabs(slope) / root
        if (old == 0.0 and slope >= 0.0) or (old == box and slope <= 0.0):
            fall_asleep(rows, work, k, travel + way)
            continue
        violation = max(violation, way)
        new = min(max(old - slope / curvature, 0.0), box)
        change = new - old
        if change != 0.0:
            rows.dual[i] = new
            step = change * y
            add(rows, r, step * work.d_weights, work.u)
            work.u[p] += step * work.d_bias
            travel += fabs(change) * root
        rows.until[i] = 0.0
        if new == 0.0 or new == box:
            fall_asleep(rows, work, k, travel + fabs(slope + change * curvature) / root)
        if travel >= work.wake:
            list_all(rows, work, k + 1)
            q, is_whole_list = 0, False
    if not is_whole_list:
        work.wake = -1.0
    work.travel = travel
    return violation


def solve(
    rows: Rows, work: Work, moved: float, shrink: float, floor: float, max_sweeps: int
) -> None:
    """Sweep until the violation met first has fallen by `shrink`, or to `floor`.

    Because the first violation of a round is as large as what the neighbours changed, by which u
    has `moved` away from where it was before, the accuracy tightens with the residuals by itself.
    A sweep's steps largely undo each other: after it, travel counts how far u has come, not the
    way it went, and who fell asleep on that way keeps the slack that is left.
    """
    looks = 0
    work.sweeps = 0
    target = violation = INF
    while work.sweeps == 0 or (violation > target and work.sweeps < max_sweeps):
        travel = work.travel
        work.travel = travel + moved
        violation = sweep(rows, work)
        way, met = work.travel, work.looks
        far = min(way, travel + distance(work.u, work.before, work.d_weights, work.d_bias))
        for j in range(work.u.shape[0]):
            work.before[j] = work.u[j]
        for k in range(work.n_slept):
            rows.until[rows.ids[work.slept[k]]] -= way - far
        is_open = work.wake < 0.0 or work.wake == INF
        if (is_open and 2 * met < work.end - work.begin) or 8 * met + 64 < work.n_listed:
            list_awake(rows, work, far + AHEAD * (way - travel))
        if work.sweeps == 0:
            target = max(shrink * violation, floor)
        work.travel, moved = far, 0.0
        looks += met
        work.sweeps += 1
    work.looks = looks
    work.violation = violation
    work.is_hasty = violation > target


def solve_rows(
    rows: Rows, work: Work, metric: tuple[float, float], moved: float, pace: tuple[float, float]
) -> tuple[int, float, int, tuple[Floats, int, float, float]]:
    """Solve one agent's problem over all rows; return sweeps, violation, looks and where it is.

    For tests and benchmarks of the problem alone: `metric` is D, `pace` is shrink and most sweeps;
    C is 1, so a row's weight is its box; `lean` says where to start from, and what is returned last
    is u and the screening to go on with.
    """
    work.d_weights, work.d_bias = metric
    work.C = 1.0
    work.begin, work.end = 0, rows.ids.shape[0]
    solve(rows, work, moved, pace[0], 1e-14, int(pace[1]))
    reached = np.array(work.u), int(work.n_listed), float(work.wake), float(work.travel)
    return int(work.sweeps), float(work.violation), int(work.looks), reached


def lean(work: Work, u: Floats, before: Floats, screening: tuple[int, float, float]) -> None:
    """Set where `solve_rows` starts: u, u before it moved; rows listed, wake and travel."""
    for j in range(u.shape[0]):
        work.u[j], work.before[j] = u[j], before[j]
    work.n_listed, work.wake, work.travel = screening


def is_zero(X: NDArray[Any], i: int, first: int, end: int) -> bool:
    """Whether features `first` to `end` of row i are 0."""
    n = 0
    for j in range(first, end):
        n += X[i, j] != 0.0
    return n == 0


def count_blocks(X: NDArray[Any], at: Ints, starts: Ints) -> None:
    """Find where each row's blocks of eight features that are not all zero begin, rows at `at`."""
    p = X.shape[1]
    for n in range(at.shape[0]):
        starts[n + 1] = starts[n]
        for first in range(0, p, 8):
            if not is_zero(X, at[n], first, min(first + 8, p)):
                starts[n + 1] += 1


def fill_blocks(X: NDArray[Any], at: Ints, values: NDArray[Any], columns: Places) -> None:
    """Copy these blocks, and note where in a row each begins."""
    p = X.shape[1]
    b = 0
    for n in range(at.shape[0]):
        for first in range(0, p, 8):
            end = min(first + 8, p)
            if is_zero(X, at[n], first, end):
                continue
            columns[b] = first
            for k in range(8):
                values[b, k] = X[at[n], first + k] if first + k < end else 0.0
            b += 1


# The step


def gather(agents: Agents, ends: Ends, work: Work, a: int) -> None:
    """Add up what the links bring: inflow = offset + Σ z."""
    p1 = agents.pull.shape[1]
    for c in range(agents.n_parts):
        for j in range(p1):
            work.inflow[c, j] = agents.offset[a, c, j] if agents.has_offset[a] else 0.0
        work.inflow[c, p1 - 1] += agents.prox[a, c] * agents.estimate[a, c, p1 - 1]
    for k in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
        h = ends.ids[k]
        for c in range(agents.n_parts if ends.is_wide[h] else 1):
            for j in range(p1):
                work.inflow[c, j] += ends.state[h, c, j]


def aim(agents: Agents, work: Work, a: int) -> float:
    """Set D, m and u = D X̃ᵀYλ + m; return how far u has moved."""
    p, last = agents.pull.shape[1] - 1, agents.n_parts - 1
    g, s = agents.gain[a, 0, 0], agents.gain[a, 1, 0]
    g_bias, s_bias = agents.gain[a, 0, 1], agents.gain[a, 1, 1]
    d = g + s
    work.d_weights, work.d_bias = d, g_bias + s_bias
    for j in range(p):  # a loop a vector: the compiler takes four features at a time
        work.shift[j] = work.inflow[0, j] * g + work.inflow[last, j] * s
    for j in range(p):
        work.before[j] = agents.decision[a, j]
    for j in range(p):
        work.u[j] = d * agents.pull[a, j] + work.shift[j]
    work.shift[p] = work.inflow[0, p] * g_bias + work.inflow[last, p] * s_bias
    work.before[p] = agents.decision[a, p]
    work.u[p] = work.d_bias * agents.pull[a, p] + work.shift[p]
    return distance(work.u, work.before, work.d_weights, work.d_bias)


def settle(agents: Agents, work: Work, a: int) -> None:
    """Set x and X̃ᵀYλ from u."""
    p = agents.pull.shape[1] - 1
    norm = 0.0
    drift = 0.0
    d, g, s = work.d_weights, agents.gain[a, 0, 0], agents.gain[a, 1, 0]
    for j in range(p):
        agents.decision[a, j] = work.u[j]
    for j in range(p):
        agents.pull[a, j] = (work.u[j] - work.shift[j]) / d
    for j in range(p):
        agents.estimate[a, 0, j] = (agents.pull[a, j] + work.inflow[0, j]) * g
    if agents.n_parts == 2:
        for j in range(p):
            agents.estimate[a, 1, j] = (agents.pull[a, j] + work.inflow[1, j]) * s
    agents.decision[a, p] = work.u[p]
    agents.pull[a, p] = (work.u[p] - work.shift[p]) / work.d_bias
    for c in range(agents.n_parts):
        x = (agents.pull[a, p] + work.inflow[c, p]) * agents.gain[a, c, 1]
        if agents.prox[a, c] > 0.0:
            drift = max(drift, fabs(x - agents.estimate[a, c, p]))
        agents.estimate[a, c, p] = x
        norm += x * x + length(agents.estimate, a, c)
    agents.drift[a], agents.norm[a] = drift, sqrt(norm)


def local_step(
    a: int, rows: Rows, agents: Agents, ends: Ends, work: Work, job: Job, age: int
) -> int:
    """x_a = argmin f_a(x) − (Σ_b z[a→b])ᵀx + ½ Σ_b ρ_ab‖x‖², from the last λ; return looks.

    As rounds go by more is asked for, so that in the end every problem is solved exactly.
    """
    gather(agents, ends, work, a)
    moved = aim(agents, work, a)
    agents.sweeps[a] = 0
    looks = 0
    if agents.n_rows[a] > 0:
        # Nobody waits for an agent with a free bias: it may take its proximal step with care.
        is_free = agents.prox[a, 0] > 0.0 or agents.prox[a, 1] > 0.0
        shrink = job.shrink * 100.0 / (100.0 + age)
        work.begin, work.end = agents.first_row[a], agents.first_row[a] + agents.n_rows[a]
        work.n_listed, work.wake = agents.n_listed[a], agents.wake[a]
        work.travel, work.C = agents.travel[a], agents.C[a]
        solve(
            rows, work, moved, shrink * (0.1 if is_free else 1.0), job.floor,
            job.max_free if is_free else agents.care[a] * (job.max_sweeps + age // 25),
        )  # fmt: skip
        agents.is_hasty[a] = work.is_hasty
        agents.n_listed[a], agents.wake[a] = work.n_listed, work.wake
        agents.travel[a], agents.sweeps[a] = work.travel, work.sweeps
        looks = work.looks
    settle(agents, work, a)
    return looks


def local_steps(
    some: Ints, rows: Rows, agents: Agents, ends: Ends, work: Work, job: Job, age: int
) -> int:
    """Take the local step of some agents; return how many rows were looked at."""
    looks = 0
    with cython.nogil:
        for n in range(some.shape[0]):
            looks += local_step(some[n], rows, agents, ends, work, job, age)
    return looks


def length(x: Floats, a: int, c: int) -> float:
    """‖x_a‖² of one part's weights, in eight lanes."""
    s = [0.0] * 8
    p = x.shape[2] - 1
    whole = p - p % 8
    for j in range(0, whole, 8):
        for k in range(8):
            s[k] += square(x[a, c, j + k])
    for j in range(whole, p):
        s[0] += square(x[a, c, j])
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))


def compare(agents: Agents, ends: Ends, h: int, g: int, c: int, job: Job) -> None:
    """Find ‖x_a − x_b‖² and ‖x_a + x_b − 2s‖² of one part's weights, in eight lanes."""
    f = [0.0] * 8
    m = [0.0] * 8
    a, b = ends.owner[h], ends.owner[g]
    p = agents.estimate.shape[2] - 1
    inverse = 1.0 / ends.penalty[h, 0]
    whole = p - p % 8
    for j in range(0, whole, 8):
        for k in range(8):
            u, v = agents.estimate[a, c, j + k], agents.estimate[b, c, j + k]
            f[k] += square(u - v)
            m[k] += square(u + v - (ends.state[h, c, j + k] + ends.state[g, c, j + k]) * inverse)
    for j in range(whole, p):
        u, v = agents.estimate[a, c, j], agents.estimate[b, c, j]
        f[0] += square(u - v)
        m[0] += square(u + v - (ends.state[h, c, j] + ends.state[g, c, j]) * inverse)
    job.far = ((f[0] + f[4]) + (f[1] + f[5])) + ((f[2] + f[6]) + (f[3] + f[7]))
    job.moves = ((m[0] + m[4]) + (m[1] + m[5])) + ((m[2] + m[6]) + (m[3] + m[7]))


def square(v: float) -> float:
    return v * v


def exchange(agents: Agents, ends: Ends, job: Job, is_check: bool) -> None:
    """Both ends of every link send q and take in the other's; note the worst residuals.

    A message is lost where `job.heard` says so; an end that hears nothing keeps its z. With
    s = (z[a→b] + z[b→a]) / 2ρ, what the link holds,

        primal = ‖x_a − x_b‖,   dual = ‖x_a + x_b − 2s‖,   both relative to (‖x_a‖ + ‖x_b‖) / 2.

    Before a check, every link's own numbers are noted in `ends.residual`.
    """
    job.primal = 0.0
    job.dual = 0.0
    p = agents.pull.shape[1] - 1
    for i in range(ends.firsts.shape[0]):
        h = ends.firsts[i]
        g = ends.twin[h]
        a, b = ends.owner[h], ends.owner[g]
        if is_check:
            note(ends, h, agents.estimate, a, agents.estimate, b, ends.state, g)
        to_a = to_b = job.kappa
        if job.heard.shape[1] > 0:
            to_b = job.kappa if job.heard[job.done, i, 0] else 0.0
            to_a = job.kappa if job.heard[job.done, i, 1] else 0.0
        inverse_bias = 1.0 / ends.penalty[h, 1]
        far = moves = 0.0
        for c in range(2 if ends.is_wide[h] else 1):
            u, v = agents.estimate[a, c, p], agents.estimate[b, c, p]
            s, t = ends.state[h, c, p], ends.state[g, c, p]
            compare(agents, ends, h, g, c, job)
            far += job.far + square(u - v)
            moves += job.moves + square(u + v - (s + t) * inverse_bias)
        cross(agents, ends, h, to_a, to_b)
        size = 0.5 * (agents.norm[a] + agents.norm[b])
        if size > 0.0:
            job.primal = max(job.primal, sqrt(far) / size)
            job.dual = max(job.dual, sqrt(moves) / size)


def cross(agents: Agents, ends: Ends, h: int, to_a: float, to_b: float) -> None:
    """Both ends of a link send q and take in the other's, each by its own κ."""
    p = agents.pull.shape[1] - 1
    g = ends.twin[h]
    a, b = ends.owner[h], ends.owner[g]
    twice, twice_bias = 2.0 * ends.penalty[h, 0], 2.0 * ends.penalty[h, 1]
    for c in range(agents.n_parts if ends.is_wide[h] else 1):
        u, v = agents.estimate[a, c, p], agents.estimate[b, c, p]
        s, t = ends.state[h, c, p], ends.state[g, c, p]
        for j in range(p):
            q, r = ends.state[h, c, j], ends.state[g, c, j]
            x, w = agents.estimate[a, c, j], agents.estimate[b, c, j]
            ends.state[h, c, j] = (1.0 - to_a) * q + to_a * (twice * w - r)
            ends.state[g, c, j] = (1.0 - to_b) * r + to_b * (twice * x - q)
        ends.state[h, c, p] = (1.0 - to_a) * s + to_a * (twice_bias * v - t)
        ends.state[g, c, p] = (1.0 - to_b) * t + to_b * (twice_bias * u - s)


def note(
    ends: Ends, h: int, x: Floats, a: int, other_x: Floats, b: int, other_z: Floats, g: int
) -> None:
    """Write what link end h shows; the bits are the same whichever end it is."""
    p = x.shape[2] - 1
    rho = ends.penalty[h, 0]
    inverse, inverse_bias = 1.0 / rho, 1.0 / ends.penalty[h, 1]
    far = moves = flow_a = flow_b = size_a = size_b = far_bias = moves_bias = 0.0
    for c in range(2 if ends.is_wide[h] else 1):
        for j in range(p):
            u, v = x[a, c, j], other_x[b, c, j]
            s, t = ends.state[h, c, j], other_z[g, c, j]
            far += square(u - v)
            moves += square(u + v - (s + t) * inverse)
            flow_a += square(s - rho * u)
            flow_b += square(t - rho * v)
            size_a += u * u
            size_b += v * v
        u, v = x[a, c, p], other_x[b, c, p]
        s, t = ends.state[h, c, p], other_z[g, c, p]
        far_bias += square(u - v)
        moves_bias += square(u + v - (s + t) * inverse_bias)
    ends.residual[h, 0, 0], ends.residual[h, 0, 1] = far, far_bias
    ends.residual[h, 1, 0], ends.residual[h, 1, 1] = moves, moves_bias
    ends.residual[h, 2, 0], ends.residual[h, 2, 1] = flow_a + flow_b, size_a + size_b


def note_end(h: int, agents: Agents, ends: Ends, other_x: Floats, other_z: Floats) -> None:
    """Note what `exchange` would at an end that was told x_b and z[b→a], shape (1, 2, p + 1)."""
    note(ends, h, agents.estimate, ends.owner[h], other_x, 0, other_z, 0)


def send(across: Across, agents: Agents, ends: Ends) -> None:
    """One process's half of `exchange`: q = 2 ρ x_a − z[a→b] of every end, told.

    `across.are_short` says whether estimates are.
    """
    p = agents.pull.shape[1] - 1
    for i in range(across.slots.shape[0]):
        h = across.slots[i]
        a = ends.owner[h]
        twice, twice_bias = 2.0 * ends.penalty[h, 0], 2.0 * ends.penalty[h, 1]
        for c in range(2 if ends.is_wide[h] else 1):
            for j in range(p):
                across.told[i, c, j] = twice * agents.estimate[a, c, j] - ends.state[h, c, j]
            across.told[i, c, p] = twice_bias * agents.estimate[a, c, p] - ends.state[h, c, p]
    across.are_short = True
    for i in range(across.agents.shape[0]):
        if not agents.norm[across.agents[i]] <= across.longest[i]:  # or it is no number
            across.are_short = False


def step_and_send(
    across: Across, rows: Rows, agents: Agents, ends: Ends, work: Work, job: Job, age: int
) -> None:
    """Take the local step of all agents, then `send`."""
    with cython.nogil:
        for n in range(agents.used.shape[0]):
            local_step(agents.used[n], rows, agents, ends, work, job, age)
    send(across, agents, ends)


def receive(h: int, agents: Agents, ends: Ends, q: Floats, i: int, kappa: float) -> float:
    """One end's other half: z[a→b] ← (1 − κ) z[a→b] + κ q[i]; return the residual.

    An end sees neither x_b nor z[b→a] alone. What it sees, ‖q − z[a→b]‖ / ρ, is the length of the
    dual minus the primal residual vector of `exchange`; the other end sees that of their sum, so
    both are small when, and only when, both residuals are. It is relative to ‖x_a‖.
    """
    a = ends.owner[h]
    p = agents.pull.shape[1] - 1
    inverse, inverse_bias, total = 1.0 / ends.penalty[h, 0], 1.0 / ends.penalty[h, 1], 0.0
    for c in range(2 if ends.is_wide[h] else 1):
        total += square((q[i, c, p] - ends.state[h, c, p]) * inverse_bias)
        total += square(inverse) * apart(ends.state, h, q, i, c)
        for j in range(p + 1):
            ends.state[h, c, j] = (1.0 - kappa) * ends.state[h, c, j] + kappa * q[i, c, j]
    if agents.norm[a] == 0.0:
        return 0.0 if total == 0.0 else 1.0
    return sqrt(total) / agents.norm[a]


def apart(z: Floats, h: int, q: Floats, i: int, c: int) -> float:
    """‖q − z‖² of one part's weights, in eight lanes."""
    s = [0.0] * 8
    p = z.shape[2] - 1
    whole = p - p % 8
    for j in range(0, whole, 8):
        for k in range(8):
            s[k] += square(q[i, c, j + k] - z[h, c, j + k])
    for j in range(whole, p):
        s[0] += square(q[i, c, j] - z[h, c, j])
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))


def take_in(across: Across, agents: Agents, ends: Ends, job: Job) -> float:
    """Exchange inside this process, take in what was heard from others; return the worst residual.

    What was heard is then used up.
    """
    exchange(agents, ends, job, True)
    worst = max(job.primal, job.dual)
    for i in range(across.slots.shape[0]):
        if across.is_heard[i]:
            across.is_heard[i] = 0
            across.residual[i] = receive(across.slots[i], agents, ends, across.heard, i, job.kappa)
        worst = max(worst, across.residual[i])
    return max(worst, drifting(agents))


def hear_numbers(data: bytes, squares: list[float], way: Way) -> bool:
    """Have a message's numbers be what ends were told, if none is too large; return whether."""
    text, across = data, way.across
    for n in range(way.ends.shape[0]):
        square_ = squares[n]
        if not square_ <= way.most[n]:
            return False
    for n in range(way.ends.shape[0]):
        i, begin, end = way.ends[n], way.places[n, 0], way.places[n, 1]
        if i < 0:
            continue
        if cython.compiled:
            memcpy(cython.address(across.heard[i, 0, 0]), cython.address(text[begin]), end - begin)
        else:
            numbers = np.frombuffer(text[begin:end], np.float64)
            across.heard[i].reshape(-1)[: len(numbers)] = numbers
        across.is_heard[i] = 1
    return True


def drifting(agents: Agents) -> float:
    """How far biases that no link holds still move, relative to their agents."""
    worst = 0.0
    for n in range(agents.used.shape[0]):
        a = agents.used[n]
        if agents.norm[a] > 0.0:
            worst = max(worst, agents.drift[a] / agents.norm[a])
    return worst


# A check


def last_check(age: int, is_warm: bool) -> int:
    """Return the age of the last check up to this age, or 0 if there was none."""
    last = 0
    check = WARM_FIRST if is_warm else FIRST_CHECK
    while check <= age and check <= LAST_CHECK:
        last = check
        check *= 2
    return last


def next_check(age: int, is_warm: bool) -> int:
    """Return the next age at which penalties are balanced; `NEVER` when no more checks follow."""
    check = WARM_FIRST if is_warm else FIRST_CHECK
    while check <= age:
        check *= 2
    return check if check <= LAST_CHECK else NEVER


def snapshot_step(check: int, is_warm: bool) -> int:
    """Rounds between the snapshots before a check; 0 if there are none.

    A network that was at work before it changed is in its slow tail from the first round on: it
    leaps at every check, from nearly all rounds since the last.
    """
    if check == NEVER or (check < FIRST_LEAP and not is_warm):
        return 0
    since = check - last_check(check - 1, is_warm)
    covered = since * WARM_SPAN // 10 if is_warm else since * SPAN // 10
    return max(1, covered // STEPS)


def snapshot_plan(check: int, is_warm: bool) -> tuple[int, int]:
    """Return the age of the first snapshot before a check, or `NEVER`, and the rounds between."""
    step = snapshot_step(check, is_warm)
    return (check - STEPS * step, step) if step > 0 else (NEVER, 1)


def snapshot_place(age: int, is_warm: bool) -> int:
    """Return which of the snapshots before the next check is due at this age, or -1."""
    check = next_check(age - 1, is_warm)
    step = snapshot_step(check, is_warm)
    begin = check - STEPS * step
    if step == 0 or age < begin or (age - begin) % step != 0:
        return -1
    return (age - begin) // step


def next_snapshot(age: int, is_warm: bool) -> int:
    """Return from which age on, this one or later, a snapshot may be due."""
    check = next_check(age - 1, is_warm)
    begin, step = snapshot_plan(check, is_warm)
    if begin == NEVER:
        return check + 1
    return begin if age <= begin else age + (check - age) % step


def remember(age: int, past: Past, agents: Agents, ends: Ends) -> None:
    """Take a snapshot if one is due at this age and there is room for it."""
    k = snapshot_place(age, past.is_warm)
    if k < 0 or past.z.shape[1] == 0:
        return
    for i in range(ends.state.shape[0]):
        copy_block(ends.state, i, past.z[k])
    for i in range(agents.estimate.shape[0]):
        copy_block(agents.estimate, i, past.x[k])
    past.ages[k] = age


def remember_apart(age: int, past: Past, agents: Agents, ends: Ends) -> None:
    """Take a snapshot that is due, of the agents in use and their links alone."""
    k = snapshot_place(age, past.is_warm)
    for n in range(agents.used.shape[0]):
        a = agents.used[n]
        copy_block(agents.estimate, a, past.x[k])
        for i in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
            copy_block(ends.state, ends.ids[i], past.z[k])
    past.ages[k] = age


def copy_block(source: Floats, i: int, target: Floats) -> None:
    """target[i] = source[i], both parts."""
    for c in range(2):
        for j in range(source.shape[2]):
            target[i, c, j] = source[i, c, j]


def forget(past: Past) -> None:
    """No snapshot was taken."""
    for k in range(STEPS + 1):
        past.ages[k] = -1


def is_whole(past: Past, check: int) -> bool:
    """Whether every snapshot before a check was taken when it was due."""
    step = snapshot_step(check, past.is_warm)
    if step == 0 or past.z.shape[1] == 0:
        return False
    n_taken = 0
    for k in range(STEPS + 1):
        n_taken += past.ages[k] == check - (STEPS - k) * step
    return n_taken == STEPS + 1


def add_products(z: Floats, h: int, penalty: Floats, out: Floats, v: int) -> None:
    """out[v] += Σ (zᵢ − zᵢ₋₁)ᵀ(zⱼ − zⱼ₋₁) / ρ at link end h, for i ≤ j; weights in eight lanes."""
    moves = [0.0] * 48  # of eight features at a time
    each = [0.0] * 168
    p = z.shape[3] - 1
    for n in range(8 * N_PRODUCTS):
        each[n] = 0.0
    for c in range(2):
        for first in range(0, p, 8):
            last = min(8, p - first)
            for i in range(STEPS):
                for k in range(last):
                    moves[8 * i + k] = z[i + 1, h, c, first + k] - z[i, h, c, first + k]
                for k in range(last, 8):
                    moves[8 * i + k] = 0.0
            n = 0
            for i in range(STEPS):
                for j in range(i, STEPS):
                    for k in range(8):
                        each[8 * n + k] += moves[8 * i + k] * moves[8 * j + k]
                    n += 1
    n = 0
    for i in range(STEPS):
        for j in range(i, STEPS):
            total = bias = 0.0
            for k in range(8):
                total += each[8 * n + k]
            for c in range(2):
                bias += (z[i + 1, h, c, p] - z[i, h, c, p]) * (z[j + 1, h, c, p] - z[j, h, c, p])
            out[v, N_SHOWN + n] += total / penalty[h, 0] + bias / penalty[h, 1]
            n += 1


def measure(s: int, sets: Sets, ends: Ends, past: Past, has_products: bool) -> int:
    """Set what each node shows of set s in `sets.by_node`; return how many nodes there are.

    First `N_SHOWN` squares, see `Ends.residual`; then, if every snapshot was taken, the inner
    products of the moves between them.
    """
    begin, end = sets.set_node[s], sets.set_node[s + 1]
    for v in range(begin, end):
        measure_node(v, sets, ends, past, has_products, sets.by_node, v - begin)
    return end - begin


def measure_node(
    v: int, sets: Sets, ends: Ends, past: Past, has_products: bool, out: Floats, row: int
) -> None:
    for j in range(N_SHOWN + N_PRODUCTS):
        out[row, j] = 0.0
    for k in range(sets.node_noted[v], sets.node_noted[v + 1]):
        for i in range(3):
            for j in range(2):
                out[row, 2 * i + j] += ends.residual[sets.noted[k], i, j]
    if has_products:
        for k in range(sets.node_end[v], sets.node_end[v + 1]):
            add_products(past.z, sets.ends[k], ends.penalty, out, row)


def measure_nodes(some: Ints, sets: Sets, ends: Ends, past: Past, has_products: bool) -> Floats:
    """Return what some entries of `Sets.node_end` show, a row an entry: see `measure`."""
    out = np.zeros((some.shape[0], N_SHOWN + N_PRODUCTS))
    view = out
    for n in range(some.shape[0]):
        measure_node(some[n], sets, ends, past, has_products, view, n)
    return out


def measure_set(s: int, sets: Sets, ends: Ends, past: Past, has_products: bool) -> Floats:
    """Return what each node here shows of set s: see `measure`."""
    n = measure(s, sets, ends, past, has_products)
    return np.array(sets.by_node)[:n].copy()


def sort_up(values: Floats, n: int) -> None:
    """Sort the first n values (Shell, 1959): no library, so the same everywhere."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


def add_up(sets: Sets, n: int) -> None:
    """Add up what n nodes show, each column in ascending order: whatever order nodes stand in."""
    for j in range(N_SHOWN + N_PRODUCTS):
        for v in range(n):
            sets.column[v] = sets.by_node[v, j]
        sort_up(sets.column, n)
        total = 0.0
        for v in range(n):
            total += sets.column[v]
        sets.total[j] = total


def sum_of_nodes(values: Floats) -> Floats:
    """Add up the rows of an array, one a node, each column in ascending order."""
    out = np.zeros(values.shape[1])
    column = np.zeros(values.shape[0])
    for j in range(values.shape[1]):
        column[:] = values[:, j]
        sort_up(column, values.shape[0])
        total = 0.0
        for value in column:
            total += value
        out[j] = total
    return out


def within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)


def balance(level: Floats, found: Floats, start: float, age: int) -> None:
    """Set a set's new level from what its links show at a check: see `decide_level`."""
    ratio = within(sqrt(found[0] / max(found[2], TINY)), 1.0 / MOST, MOST)
    ratio_bias = within(sqrt(found[1] / max(found[3], TINY)), 1.0 / MOST, MOST)
    flow, size = found[4], found[5]
    scale = SCALE * sqrt(flow / max(size, TINY)) / start
    if age >= TAIL:
        level[2] = within(level[2] * ratio, 1.0 / BAND, BAND)
    wanted = scale * level[2]
    if size > 0.0 and not (1.0 / LEAST <= wanted / level[0] <= LEAST):
        level[0] = within(wanted, LEVEL_LEAST, LEVEL_MOST)
    level[1] = within(level[1] * ratio_bias / ratio, BIAS_LEAST, BIAS_MOST)


def decide_level(level: Floats, found: Floats, start: float, age: int) -> Floats:
    """Return a set's new level from what its links show at a check.

    Parameters
    ----------
    level : array, shape (3,)
        Penalty of the weights over the one begun with, that of the bias over its usual share of it,
        and what the tail has taught about the first.
    found : array, shape (6,) or more
        Squared disagreement of weights and of bias, squared movement of weights and of bias,
        squared multipliers and squared classifiers. Sums over all links.
    start : float
        The weights' penalty begun with.
    age : int
        Rounds since something changed.
    """
    new = np.array(level, dtype=np.float64)
    balance(new, np.ascontiguousarray(found, dtype=np.float64), start, age)
    return new


def mixture(total: Floats, gamma: Floats) -> bool:
    """Set γ from the summed inner products; return whether there is one.

    None if nothing moves or γ is beyond measure. (G / trace + ridge) γ ∝ 1, by elimination; the
    matrix is positive definite.
    """
    G = [0.0] * 36
    n = N_SHOWN
    for i in range(STEPS):
        for j in range(i, STEPS):
            G[6 * i + j] = G[6 * j + i] = total[n]
            n += 1
    trace = 0.0
    for i in range(STEPS):
        trace += G[7 * i]
    if not 0.0 < trace < INF:
        return False
    for i in range(36):
        G[i] /= trace
    for i in range(STEPS):
        G[7 * i] += RIDGE
        gamma[i] = 1.0
    for k in range(STEPS):
        for i in range(k + 1, STEPS):
            factor = G[6 * i + k] / G[7 * k]
            for j in range(k, STEPS):
                G[6 * i + j] -= factor * G[6 * k + j]
            gamma[i] -= factor * gamma[k]
    for k in range(STEPS - 1, -1, -1):
        for j in range(k + 1, STEPS):
            gamma[k] -= G[6 * k + j] * gamma[j]
        gamma[k] /= G[7 * k]
    whole = largest = 0.0
    for i in range(STEPS):
        whole += gamma[i]
    for i in range(STEPS):
        gamma[i] /= whole
        largest = max(largest, fabs(gamma[i]))
    return largest < MOST_LEAP


def decide_leap(total: Floats) -> Floats:
    """Return γ from what a check shows, summed (see `measure`); empty if there is no leap."""
    gamma = np.zeros(STEPS)
    is_one = mixture(np.ascontiguousarray(total, dtype=np.float64), gamma)
    return gamma if is_one else np.zeros(0)


def mix(gamma: Floats, taken: Floats, k: int, out: Floats) -> None:
    """out[k] = Σ γᵢ taken[i][k]."""
    for c in range(2):
        for f in range(out.shape[2]):
            total = 0.0
            for i in range(STEPS):
                total += gamma[i] * taken[i + 1, k, c, f]
            out[k, c, f] = total


def apply_leap(s: int, gamma: Floats, sets: Sets, past: Past, agents: Agents, ends: Ends) -> None:
    """Set z at the link ends and x at the agents of set s to the mixture of their snapshots."""
    for k in range(sets.node_end[sets.set_node[s]], sets.node_end[sets.set_node[s + 1]]):
        mix(gamma, past.z, sets.ends[k], ends.state)
    for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
        mix(gamma, past.x, sets.agents[k], agents.estimate)


def set_penalties(agents: Agents, ends: Ends) -> bool:
    """Set ρ on every link end; return whether one has changed."""
    has_changed = False
    for k in range(ends.ids.shape[0]):
        if set_penalty(ends.ids[k], agents, ends):
            has_changed = True
    return has_changed


def set_penalty(h: int, agents: Agents, ends: Ends) -> bool:
    """Set ρ on a link end: level · start, or 2η/A where η inside or across nodes is chosen.

    An end keeps its multiplier, z ← z + (ρ_new − ρ_old) x, with x as it leapt along if z leapt.
    """
    p = agents.pull.shape[1] - 1
    a = ends.owner[h]
    eta = ends.eta_across if ends.is_across[h] else ends.eta_inside
    if eta != eta:
        weights = agents.level[a, 0] * agents.start[a, 0]
        bias = agents.level[a, 1] * agents.level[a, 0] * agents.start[a, 1]
    else:
        weights = bias = 2.0 * eta / agents.size[a]
    grown, grown_bias = weights - ends.penalty[h, 0], bias - ends.penalty[h, 1]
    for c in range(2 if ends.is_wide[h] else 1):
        for j in range(p):
            ends.state[h, c, j] += grown * agents.estimate[a, c, j]
        ends.state[h, c, p] += grown_bias * agents.estimate[a, c, p]
    ends.penalty[h, 0], ends.penalty[h, 1] = weights, bias
    return grown != 0.0 or grown_bias != 0.0


def mean_square(rows: Rows, agents: Agents, a: int) -> float:
    """Mean ‖x‖² of an agent's rows; 1 if it has none."""
    begin, end = agents.first_row[a], agents.first_row[a] + agents.n_rows[a]
    if end == begin:
        return 1.0
    total = 0.0
    for k in range(begin, end):
        total += rows.norms[rows.ids[k]]
    return max(total / (end - begin), 1e-12)


def set_gain(a: int, rows: Rows, agents: Agents, ends: Ends) -> None:
    """Set 1/U of an agent; if its gains changed it must look at all its rows again.

    U = ε/A + Σ_b ρ for the weights and Σ_b ρ for the bias. A bias that no link holds is weighed
    like a feature of a third of an average row's length. Lighter would need fewer rounds, but makes
    an agent's own problem harder; ten is between.
    """
    total = [0.0] * 4
    for k in range(4):
        total[k] = 0.0
    for k in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
        h = ends.ids[k]
        for c in range(2 if ends.is_wide[h] else 1):
            total[2 * c] += ends.penalty[h, 0]
            total[2 * c + 1] += ends.penalty[h, 1]
    has_own_bias = agents.reg[a, 2] < INF
    length = 1.0
    if total[1] == 0.0 or total[3] == 0.0:
        length = mean_square(rows, agents, a)
    has_changed = False
    for c in range(2):
        if not agents.is_relay[a]:
            total[2 * c] += agents.reg[a, c] / agents.size[a]
            if c == 1 and has_own_bias:
                total[2 * c + 1] += agents.reg[a, 2] / agents.size[a]
        agents.prox[a, c] = 0.0
        if c == 1 and not has_own_bias:
            total[2 * c + 1] = INF
        elif total[2 * c + 1] == 0.0:
            weighed = 10.0 * total[2 * c] / length if total[2 * c] > 0.0 else 1.0
            agents.prox[a, c] = agents.hold[a] * weighed
            total[2 * c + 1] = agents.prox[a, c]
        for k in range(2):
            new = 1.0 / total[2 * c + k] if total[2 * c + k] > 0.0 else 0.0
            has_changed = has_changed or new != agents.gain[a, c, k]
            agents.gain[a, c, k] = new
    if has_changed:
        agents.travel[a], agents.wake[a] = 0.0, -1.0
        for k in range(agents.first_row[a], agents.first_row[a] + agents.n_rows[a]):
            rows.until[rows.ids[k]] = 0.0


def keep_estimates(agents: Agents, past: Past) -> None:
    """Keep x as agents found it, before z leaps and x leaps along."""
    for i in range(past.kept.shape[0]):
        copy_block(agents.estimate, i, past.kept)


def renew(rows: Rows, agents: Agents, ends: Ends, past: Past, has_leapt: bool) -> None:
    """Set all penalties and gains; after a leap x is again what agents found."""
    if set_penalties(agents, ends):
        forget(past)
    if has_leapt:
        for i in range(past.kept.shape[0]):
            copy_block(past.kept, i, agents.estimate)
    for n in range(agents.used.shape[0]):
        set_gain(agents.used[n], rows, agents, ends)


def revise(age: int, agents: Agents, ends: Ends) -> None:
    """Change, at a check, what every agent decides by itself."""
    loosen(agents)
    take_care(age, agents, ends)


def loosen(agents: Agents) -> None:
    """Hold free biases that have not come to rest less firmly, and too loose ones more firmly.

    One that has not since the last check, half as many rounds ago, is held a fifth as firmly: a
    bias that no link holds may have far to go, at a constant pace. Where it is so loose that the
    agent cannot solve its own problem, one row against the other, it is held five times as firmly.
    """
    for n in range(agents.used.shape[0]):
        a = agents.used[n]
        if agents.prox[a, 0] > 0.0 or agents.prox[a, 1] > 0.0:
            if agents.sweeps[a] >= HARD:
                agents.hold[a] = min(agents.hold[a] * MOST, 1.0)
            elif agents.drift[a] > 0.25 * agents.drift_before[a]:
                agents.hold[a] = max(agents.hold[a] / MOST, 1e-4)
            agents.drift_before[a] = agents.drift[a]


def take_care(age: int, agents: Agents, ends: Ends) -> None:
    """Let agents sweep more often that agree less with others than half as many rounds ago.

    What a round leaves unsolved feeds the next one: where few sweeps do not keep up with what the
    neighbours change, as with many sparse rows, residuals would grow. It is so only where sweeps
    ended before the agent's problem was solved. In the first rounds residuals say nothing yet.
    """
    for n in range(agents.used.shape[0]):
        a = agents.used[n]
        found = 0.0
        for k in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
            h = ends.ids[k]
            g = h if ends.twin[h] < 0 else min(h, ends.twin[h])  # where `exchange` notes it
            found += ends.residual[g, 0, 0] + ends.residual[g, 1, 0]
        if agents.is_hasty[a] and age >= TAIL and found > agents.apart[a] > 0.0:
            agents.care[a] = min(agents.care[a] * CARE, MOST_CARE)
        agents.apart[a] = found


def check(
    age: int, rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, begin: int, end: int
) -> None:
    """Balance the penalties of sets from `begin` up to `end`, and let them leap."""
    has_changed = False
    has_products = is_whole(past, age)
    for s in range(begin, end):
        has_none = sets.node_noted[sets.set_node[s]] == sets.node_noted[sets.set_node[s + 1]]
        if has_none or sets.is_silent[s]:
            continue
        n = measure(s, sets, ends, past, has_products)
        add_up(sets, n)
        has_leapt = has_products and mixture(sets.total, sets.gamma)
        if has_leapt:
            for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
                copy_block(agents.estimate, sets.agents[k], past.kept)
            apply_leap(s, sets.gamma, sets, past, agents, ends)
        first = sets.agents[sets.set_agent[s]]
        for j in range(3):
            sets.level[j] = agents.level[first, j]
        balance(sets.level, sets.total, agents.start[first, 0], age)
        for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
            for j in range(3):
                agents.level[sets.agents[k], j] = sets.level[j]
        for k in range(sets.node_end[sets.set_node[s]], sets.node_end[sets.set_node[s + 1]]):
            if set_penalty(sets.ends[k], agents, ends):
                has_changed = True
        if has_leapt:  # x is again what agents found
            for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
                copy_block(past.kept, sets.agents[k], agents.estimate)
    if has_changed:
        forget(past)
    revise(age, agents, ends)
    for n in range(agents.used.shape[0]):
        set_gain(agents.used[n], rows, agents, ends)


# The certificate


def average(s: int, sets: Sets, agents: Agents, sums: Sums) -> int:
    """Set a set's mean common part and each team's mean specific part; return who counts."""
    p1 = sums.common.shape[0]
    n_teams = sets.set_team[s + 1] - sets.set_team[s]
    for j in range(p1):
        sums.common[j] = 0.0
        for t in range(n_teams):
            sums.specific[t, j] = 0.0
    for t in range(n_teams):
        sums.members[t] = 0.0
        sums.share[t] = sets.share[sets.set_team[s] + t]
    n = 0
    for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
        a = sets.agents[k]
        if agents.is_relay[a]:
            continue
        n += 1
        t = sets.team[a]
        sums.members[t] += 1.0
        for j in range(p1):
            sums.common[j] += agents.estimate[a, 0, j]
            sums.specific[t, j] += agents.estimate[a, 1, j]
    for j in range(p1):
        sums.common[j] /= max(n, 1)
        for t in range(n_teams):
            sums.specific[t, j] /= max(sums.members[t], 1.0)
    return n


def tally(a: int, t: int, rows: Rows, agents: Agents, sums: Sums) -> None:
    """Add an agent's rows to its team's sums, at the classifier w = w₀ + w_t of the average.

    Rows that sleep beyond the horizon, the agent's travel and the way from its u to w, are on the
    same side of their margins for w as for u. So they need no look: those with λ = 0 lose nothing,
    and what those with λ = box lose follows, up to the rounding of many rounds, from X̃ᵀYλ, less
    what the rows looked at have part in it. An agent's rows are added up for themselves first, so
    that agents may be anywhere.
    """
    p = rows.n_features
    d_weights = agents.gain[a, 0, 0] + agents.gain[a, 1, 0]
    d_bias = agents.gain[a, 0, 1] + agents.gain[a, 1, 1]
    for j in range(p + 1):
        sums.w[j] = sums.common[j] + sums.specific[t, j]
    for j in range(p + 1):
        sums.seen[j] = 0.0
        sums.one[j] = 0.0
    horizon = INF
    if d_weights > 0.0 and d_bias > 0.0:
        way = 0.0
        for j in range(p):
            way += square(agents.decision[a, j] - sums.w[j])
        bias = agents.decision[a, p] - sums.w[p]
        horizon = agents.travel[a] + sqrt(way / d_weights + bias * bias / d_bias)
    bound_loss = loss = slant = plus = minus = 0.0
    for k in range(agents.first_row[a], agents.first_row[a] + agents.n_rows[a]):
        i = rows.ids[k]
        weight, box, y = rows.dual[i], box_of(rows, i, agents.C[a]), rows.y[i]
        if y > 0.0:
            plus += weight
        else:
            minus += weight
        if rows.until[i] > horizon and (weight == 0.0 or weight == box):
            bound_loss += weight
            continue
        margin = y * (dot(rows, rows.at[i], sums.w) + sums.w[p])
        loss += box * max(0.0, 1.0 - margin)
        if weight == 0.0:
            continue
        add(rows, rows.at[i], y * weight, sums.seen)
        sums.seen[p] += y * weight
        inside = min(weight, box - weight)
        if inside > 0.0:
            add(rows, rows.at[i], inside, sums.one)
            sums.one[p] += inside
            slant += inside * y
    if bound_loss > 0.0:
        reached = 0.0
        for j in range(p + 1):
            reached += (agents.pull[a, j] - sums.seen[j]) * sums.w[j]
        loss += max(0.0, bound_loss - reached)
    sums.loss[t] += loss
    sums.slant[t] += slant
    sums.plus[t] += plus
    sums.minus[t] += minus
    for j in range(p + 1):
        sums.pull[t, j] += agents.pull[a, j]
        sums.room[t, j] += sums.one[j]


def clear(sums: Sums, n_teams: int) -> None:
    for t in range(n_teams):
        clear_team(sums, t)


def clear_team(sums: Sums, t: int) -> None:
    sums.loss[t] = 0.0
    sums.slant[t] = 0.0
    sums.plus[t] = 0.0
    sums.minus[t] = 0.0
    for j in range(sums.common.shape[0]):
        sums.pull[t, j] = 0.0
        sums.room[t, j] = 0.0
        sums.positive[t, j] = 0.0
        sums.negative[t, j] = 0.0


def lacks_room(sums: Sums, t: int) -> bool:
    """Whether a team's rows inside the box cannot make up for what one class weighs more."""
    return not fabs(sums.plus[t] - sums.minus[t]) <= sums.room[t, sums.common.shape[0] - 1]


def add_classes(a: int, t: int, rows: Rows, agents: Agents, sums: Sums) -> None:
    """Add Σ λᵢ xᵢ of an agent's rows over yᵢ = +1 and over yᵢ = −1, biases left alone."""
    p = rows.n_features
    for j in range(p):
        sums.one[j] = 0.0
        sums.other[j] = 0.0
    for k in range(agents.first_row[a], agents.first_row[a] + agents.n_rows[a]):
        i = rows.ids[k]
        if rows.dual[i] != 0.0:
            if rows.y[i] > 0.0:
                add(rows, rows.at[i], rows.dual[i], sums.one)
            else:
                add(rows, rows.at[i], rows.dual[i], sums.other)
    for j in range(p):
        sums.positive[t, j] += sums.one[j]
        sums.negative[t, j] += sums.other[j]


def tally_agent(a: int, t: int, rows: Rows, agents: Agents, sums: Sums, has_room: bool) -> None:
    """Add one agent's rows to sums: first all but classes, then, of teams without room, those."""
    if has_room:
        tally(a, t, rows, agents, sums)
    else:
        add_classes(a, t, rows, agents, sums)


def tally_each(
    some: Ints, rows: Rows, agents: Agents, sets: Sets, sums: Sums, has_room: bool, out: Floats
) -> None:
    """Write what each of some agents would add to its team's sums, a row an agent.

    With room: loss, slant, plus, minus, pull and room. Else: positive and negative.
    """
    p1 = sums.common.shape[0]
    with cython.nogil:
        for n in range(some.shape[0]):
            a = some[n]
            t = sets.team[a]
            clear_team(sums, t)
            tally_agent(a, t, rows, agents, sums, has_room)
            if has_room:
                out[n, 0], out[n, 1] = sums.loss[t], sums.slant[t]
                out[n, 2], out[n, 3] = sums.plus[t], sums.minus[t]
            first = 4 if has_room else 0
            for j in range(p1):
                out[n, first + j] = sums.pull[t, j] if has_room else sums.positive[t, j]
                out[n, first + p1 + j] = sums.room[t, j] if has_room else sums.negative[t, j]


def teams_without_room(n_teams: int, is_shared: bool, sums: Sums) -> list[bool]:
    """Say of each team whether its classes are needed, once all agents have been tallied."""
    repair(sums, n_teams, is_shared)
    return [bool(needs_classes(sums, t, is_shared)) for t in range(n_teams)]


def certify(s: int, rows: Rows, agents: Agents, sets: Sets, sums: Sums) -> None:
    """Set objective and bound of set s from its agents' average and multipliers."""
    if average(s, sets, agents, sums) == 0:
        sums.objective = 0.0
        sums.bound = 0.0
        return
    n_teams = sets.set_team[s + 1] - sets.set_team[s]
    clear(sums, n_teams)
    for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
        a = sets.agents[k]
        if not agents.is_relay[a]:
            tally(a, sets.team[a], rows, agents, sums)
    first = counted(s, sets, agents)
    is_shared = agents.reg[first, 2] > 0.0
    repair(sums, n_teams, is_shared)
    for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
        a = sets.agents[k]
        if not agents.is_relay[a] and needs_classes(sums, sets.team[a], is_shared):
            add_classes(a, sets.team[a], rows, agents, sums)
    judge(n_teams, agents.reg[first], sums)


def counted(s: int, sets: Sets, agents: Agents) -> int:
    """The first agent of a set that is no relay."""
    for k in range(sets.set_agent[s], sets.set_agent[s + 1]):
        if not agents.is_relay[sets.agents[k]]:
            return sets.agents[k]
    return sets.agents[sets.set_agent[s]]


def repair(sums: Sums, n_teams: int, is_shared: bool) -> None:
    """Find how λ is made feasible where one bias is shared by all teams: Σ yλ = 0 over the set.

    θ moves rows inside the box, λ − θ y min(λ, box − λ); where they have no room, the heavier
    class is scaled down. With a free bias a team, `judge` does so team by team.
    """
    last = sums.common.shape[0] - 1
    plus = minus = room = 0.0
    for t in range(n_teams):
        plus += sums.plus[t]
        minus += sums.minus[t]
        room += sums.room[t, last]
    sums.theta = 0.0
    sums.kept_plus = 1.0
    sums.kept_minus = 1.0
    if is_shared:
        choose_repair(sums, plus, minus, room)


def choose_repair(sums: Sums, plus: float, minus: float, room: float) -> None:
    """θ where there is room, else which share of either class stays."""
    sums.theta = 0.0
    sums.kept_plus = 1.0
    sums.kept_minus = 1.0
    if fabs(plus - minus) <= room:
        sums.theta = (plus - minus) / room if room > 0.0 else 0.0
    else:
        both = min(plus, minus)
        sums.kept_plus = both / plus if plus > 0.0 else 0.0
        sums.kept_minus = both / minus if minus > 0.0 else 0.0


def needs_classes(sums: Sums, t: int, is_shared: bool) -> bool:
    """Whether a team's classes are scaled down, each by itself."""
    if is_shared:
        return sums.kept_plus < 1.0 or sums.kept_minus < 1.0
    return lacks_room(sums, t)


def feasible(sums: Sums, t: int, is_shared: bool) -> float:
    """Set `dual` to a team's v = Σ y λ x̃ of a λ made feasible; return its Σ λ."""
    p1 = sums.common.shape[0]
    if not is_shared:
        choose_repair(sums, sums.plus[t], sums.minus[t], sums.room[t, p1 - 1])
    if sums.kept_plus < 1.0 or sums.kept_minus < 1.0:
        for j in range(p1 - 1):
            sums.dual[j] = (
                sums.kept_plus * sums.positive[t, j] - sums.kept_minus * sums.negative[t, j]
            )
        plus, minus = sums.kept_plus * sums.plus[t], sums.kept_minus * sums.minus[t]
        sums.dual[p1 - 1] = plus - minus
        return plus + minus
    for j in range(p1):
        sums.dual[j] = sums.pull[t, j] - sums.theta * sums.room[t, j]
    return sums.plus[t] + sums.minus[t] - sums.theta * sums.slant[t]


def judge(n_teams: int, reg: Floats, sums: Sums) -> None:
    """Set objective and bound of a set from its sums.

    With v_t = Σ_{i in t} yᵢλᵢx̃ᵢ any λ in [0, box] with Σ yλ = 0, in each team or, where teams have
    one bias in common, over all, bounds the optimum from below:

        D(λ) = Σ λᵢ − ‖Σ_t v_t‖² / 2ε₁ − Σ_t ‖v_t‖² / (2 ε₂ A_t/A)

    with the bias's part of v_t weighed by its own ε. λ is made feasible by moving rows inside the
    box: that costs little near the optimum, where such rows lie on the margin. Of the multiples of
    a feasible λ, which are feasible too, the best is taken.
    """
    p = sums.common.shape[0] - 1
    primal = 0.5 * reg[0] * weights_square(sums.common)
    gain = curved = 0.0
    for j in range(p + 1):
        sums.total[j] = 0.0
    for t in range(n_teams):
        share = sums.share[t]
        primal += 0.5 * reg[1] * share * weights_square(sums.specific[t]) + sums.loss[t]
        gain += feasible(sums, t, reg[2] > 0.0)
        for j in range(p):
            sums.total[j] += sums.dual[j]
        if share > 0.0:  # a team of relays alone has neither rows nor a regulariser
            curved += weights_square(sums.dual) / (share * reg[1])
            if 0.0 < reg[2] < INF:
                primal += 0.5 * reg[2] * share * square(sums.specific[t, p])
                curved += square(sums.dual[p]) / (share * reg[2])
    curved += weights_square(sums.total) / reg[0]
    scale = min(1.0, gain / curved) if curved > 0.0 else 1.0
    sums.objective = primal
    sums.bound = scale * gain - 0.5 * scale * scale * curved


def weights_square(v: Floats) -> float:
    """‖v‖² without its last entry."""
    total = 0.0
    for j in range(v.shape[0] - 1):
        total += v[j] * v[j]
    return total


def certify_sets(rows: Rows, agents: Agents, sets: Sets, sums: Sums) -> Floats:
    """Return every set's objective at its agents' average, and a bound on the optimum: (set, 2)."""
    out = np.zeros((sets.set_agent.shape[0] - 1, 2))
    view = out
    for s in range(view.shape[0]):
        certify(s, rows, agents, sets, sums)
        view[s, 0], view[s, 1] = sums.objective, sums.bound
    return out


def bound(n_teams: int, reg: Floats, sums: Sums) -> tuple[float, float]:
    """Return objective and bound of a set from sums that were added up elsewhere."""
    repair(sums, n_teams, reg[2] > 0.0)
    judge(n_teams, reg, sums)
    return float(sums.objective), float(sums.bound)


# The loop


def look(
    rows: Rows, agents: Agents, sets: Sets, sums: Sums, job: Job, is_calm: bool
) -> None:  # fmt: skip
    """Certify every set."""
    for s in range(sets.set_agent.shape[0] - 1):
        certify(s, rows, agents, sets, sums)
        sets.certified[s, 0] = sums.objective
        sets.certified[s, 1] = sums.bound
    conclude(sets.certified, sets, job, is_calm)


def conclude(certified: Floats, sets: Sets, job: Job, is_calm: bool) -> None:
    """From every set's objective and bound: is its gap small? If not, wait the longer for it.

    A gap is small against its bound or, if all rows of the set fit, against its total box. A look
    that only shows progress ends nothing and puts off nothing.
    """
    objective = lower = worst = 0.0
    for s in range(certified.shape[0]):
        objective += certified[s, 0]
        lower += certified[s, 1]
        least = 1e-6 * max(sets.total_box[s], TINY)
        worst = max(worst, (certified[s, 0] - certified[s, 1]) / max(certified[s, 1], least))
    k = job.done - 1
    job.log[k, 4] = objective
    job.log[k, 5] = 0.0
    if objective > lower:
        job.log[k, 5] = (objective - lower) / lower if lower > 0.0 else INF
    job.is_certified = True
    if not is_calm:
        return
    job.is_converged = worst <= job.gap_tol
    over = within(worst / job.gap_tol, 1.0, 100.0) if job.gap_tol > 0.0 else 100.0
    share = 0.02 + 0.15 * log10(over)
    n_rounds = 1.0 * (job.begun + job.done)
    job.next_look = n_rounds + max(2.0, floor(share * n_rounds))


def are_calm(job: Job) -> bool:
    """Whether agents agree and rest, and the last look was long enough ago."""
    if job.primal > job.residual_tol or job.dual > job.residual_tol:
        return False
    return job.begun + job.done >= job.next_look


def is_milestone(n_rounds: int) -> bool:
    """Whether a certificate is due just to show progress: at rounds 64, 128, 256, …."""
    return n_rounds >= 64 and n_rounds & (n_rounds - 1) == 0


def is_check_due(past: Past, job: Job) -> bool:
    """Whether penalties are balanced at the end of this round."""
    age = job.age + job.done + 1
    return job.has_checks and age == last_check(age, past.is_warm)


def carry(agents: Agents, ends: Ends, past: Past, job: Job) -> None:
    """Carry all messages of a round, log it, take a snapshot."""
    exchange(agents, ends, job, is_check_due(past, job))
    job.dual = max(job.dual, drifting(agents))
    sweeps = 0
    for n in range(agents.used.shape[0]):
        sweeps += agents.sweeps[agents.used[n]]
    k = job.done
    job.log[k, 0], job.log[k, 1] = job.primal, job.dual
    job.log[k, 2], job.log[k, 3] = sweeps, job.looks
    remember(job.age + job.done + 1, past, agents, ends)


def finish_round(rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, job: Job) -> None:
    """Carry all messages of a round, check."""
    carry(agents, ends, past, job)
    if is_check_due(past, job):
        check(job.age + job.done + 1, rows, agents, ends, sets, past, 0, n_sets_of(sets))
    count_round(job)


def count_round(job: Job) -> None:
    """Put a round in the books."""
    job.done += 1
    job.all_looks += job.looks
    job.is_certified = False


def close(
    rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, sums: Sums, job: Job
) -> None:
    """End a round, and look at the certificate where that is worth while."""
    finish_round(rows, agents, ends, sets, past, job)
    is_calm = are_calm(job)
    if job.gap_tol > 0.0 and (is_calm or is_milestone(job.begun + job.done)):
        look(rows, agents, sets, sums, job, is_calm)


def close_round(
    rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, sums: Sums, job: Job
) -> None:
    """End a round whose local steps somebody else took; `job.looks` is what they looked at."""
    with cython.nogil:
        close(rows, agents, ends, sets, past, sums, job)


def may_look(job: Job) -> bool:
    """Whether it is time for a look, should agents be calm, or in any case."""
    n_rounds = job.begun + job.done
    return job.gap_tol > 0.0 and (n_rounds >= job.next_look or is_milestone(n_rounds))


def is_look_due(primal: float, dual: float, job: Job) -> tuple[bool, bool]:
    """Whether to look at the certificate, and whether agents everywhere are calm."""
    job.primal, job.dual = primal, dual
    is_calm = bool(are_calm(job))
    return is_calm or bool(is_milestone(job.begun + job.done)), is_calm


def is_over(job: Job) -> bool:
    """Whether all rounds are done, the answer is certified, or it has taken long."""
    if job.done == 0:
        return job.log.shape[0] == 0
    return job.is_converged or job.done == job.log.shape[0] or job.all_looks > job.long


def run(
    rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, work: Work, sums: Sums,
    job: Job,
) -> None:  # fmt: skip
    """Run rounds until one is heavy or all are over."""
    with cython.nogil:
        while not is_over(job):
            looks = 0
            for n in range(agents.used.shape[0]):
                looks += local_step(
                    agents.used[n], rows, agents, ends, work, job, job.age + job.done
                )
            job.looks = looks
            close(rows, agents, ends, sets, past, sums, job)
            if job.looks >= job.heavy:
                break


def next_look_apart(done: int) -> int:
    """Return after which round sets that train apart are looked at again."""
    return done + max(FIRST_APART, done // GROWTH)


def gap_apart(objective: float, lower: float, box: float) -> float:
    """Return a set's gap, against its bound or, if all its rows fit, against its total box."""
    return max(0.0, (objective - lower) / max(lower, 1e-6 * box, TINY))


def run_apart(
    rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, work: Work, sums: Sums,
    job: Job,
) -> None:  # fmt: skip
    """Train sets that have nothing to do with each other, each until it is certified.

    One set after the other, so that what it works on stays at hand. It ends when the gap of its
    average is small, or after `job.most` rounds. After `long` somebody may look up; the next call
    goes on with set `job.turn`.

    `sets.ended` has the rounds after which a set ended, its objective, its gap, and whether that is
    small enough.
    """
    used = agents.used
    job.all_looks = 0
    while job.turn < n_sets_of(sets) and job.all_looks <= job.long:
        agents.used = sets.agents[sets.set_agent[job.turn] : sets.set_agent[job.turn + 1]]
        with cython.nogil:
            train_set(rows, agents, ends, sets, past, work, sums, job)
    agents.used = used


def n_sets_of(sets: Sets) -> int:
    """How many sets there are."""
    return sets.set_agent.shape[0] - 1


def train_set(
    rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, work: Work, sums: Sums,
    job: Job,
) -> None:  # fmt: skip
    """Run rounds of set `job.turn`, whose agents are those in use, until it ends or for long."""
    s = job.turn
    if job.done == 0:
        forget(past)
        job.next_look = job.first_look
    agents.n_parts = 1 if are_even(agents, ends) else 2
    while not sets.is_silent[s] and job.all_looks <= job.long:
        if job.done < job.next_look:
            round_apart(s, rows, agents, ends, sets, past, work, job)
        if job.done >= job.next_look:
            look_apart(s, rows, agents, sets, sums, job)
    mirror_ends(agents, ends)
    mirror(agents)
    agents.n_parts = 2
    if sets.is_silent[s]:
        job.turn += 1
        job.done = 0


def are_even(agents: Agents, ends: Ends) -> bool:
    """Whether both parts of the agents in use and of their links are the same, and remain so.

    So it is where links are wide and ε₁ = ε₂: a task that trains alone, as in lanes of a choice.
    """
    p1 = agents.pull.shape[1]
    for n in range(agents.used.shape[0]):
        a = agents.used[n]
        if agents.has_offset[a] or agents.reg[a, 0] != agents.reg[a, 1] or agents.reg[a, 2] != 0.0:
            return False
        for k in range(2):
            if agents.gain[a, 0, k] != agents.gain[a, 1, k]:
                return False
        for j in range(p1):
            if agents.estimate[a, 0, j] != agents.estimate[a, 1, j]:
                return False
        for k in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
            h = ends.ids[k]
            if not ends.is_wide[h]:
                return False
            for j in range(p1):
                if ends.state[h, 0, j] != ends.state[h, 1, j]:
                    return False
    return True


def mirror(agents: Agents) -> None:
    """Where only the first part of x is kept up, let the second be the same."""
    if agents.n_parts == 1:
        for n in range(agents.used.shape[0]):
            a = agents.used[n]
            for j in range(agents.estimate.shape[2]):
                agents.estimate[a, 1, j] = agents.estimate[a, 0, j]


def mirror_ends(agents: Agents, ends: Ends) -> None:
    """Where only the first part of z is kept up, let the second be the same."""
    if agents.n_parts == 1:
        for n in range(agents.used.shape[0]):
            a = agents.used[n]
            for k in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
                h = ends.ids[k]
                for j in range(ends.state.shape[2]):
                    ends.state[h, 1, j] = ends.state[h, 0, j]


def round_apart(
    s: int, rows: Rows, agents: Agents, ends: Ends, sets: Sets, past: Past, work: Work, job: Job
) -> None:
    """Run one round of a set; nobody asks how far its agents are from each other."""
    age = job.age + job.done + 1
    is_check = is_check_due(past, job)
    looks = 0
    for n in range(agents.used.shape[0]):
        looks += local_step(agents.used[n], rows, agents, ends, work, job, age - 1)
    job.looks = looks
    is_remembered = snapshot_place(age, past.is_warm) >= 0 and past.z.shape[1] > 0
    if is_check or is_remembered:
        mirror(agents)
    if is_check:
        mirror_ends(agents, ends)
    for n in range(agents.used.shape[0]):
        a = agents.used[n]
        for k in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
            h = ends.ids[k]
            g = ends.twin[h]
            if h < g:
                if is_check:
                    note(ends, h, agents.estimate, a, agents.estimate, ends.owner[g], ends.state, g)
                cross(agents, ends, h, job.kappa, job.kappa)
    if is_check or is_remembered:
        mirror_ends(agents, ends)
    if is_remembered:
        remember_apart(age, past, agents, ends)
    if is_check:
        check(age, rows, agents, ends, sets, past, s, s + 1)
    count_round(job)


def look_apart(s: int, rows: Rows, agents: Agents, sets: Sets, sums: Sums, job: Job) -> None:
    """Certify a set; if it is good enough or out of rounds, it ends."""
    mirror(agents)
    certify(s, rows, agents, sets, sums)
    gap = gap_apart(sums.objective, sums.bound, sets.total_box[s])
    is_good = gap <= job.gap_tol
    if is_good or job.done >= job.most:
        sets.is_silent[s] = 1
        sets.ended[s, 0], sets.ended[s, 1], sets.ended[s, 2] = job.done, sums.objective, gap
        sets.ended[s, 3] = 1.0 if is_good else 0.0
    job.next_look = min(next_look_apart(job.done), job.most)


def agreeing(n: int, ids: Ints, columns: dict[str, NDArray[Any]]) -> tuple[Ints, Ints]:
    """Number who must agree, by slot, as they appear: on the common part, then on the specific one.

    `ids` are the link ends here, `columns` theirs; there are `n` slots of agents.
    """
    owner, twin, is_wide = columns["owner"], columns["twin"], columns["is_wide"]
    common, specific = np.empty((2, n), np.int64)
    join_both(ids, owner, twin, is_wide, np.empty(n, np.int64), common, specific)
    return common, specific


def join_both(
    ids: Ints, owner: Ints, twin: Ints, is_wide: Flags, root: Ints, common: Ints, specific: Ints
) -> None:
    """Join over all links, then over wide ones; `root` is scratch."""
    join(ids, owner, twin, None, root, common)
    join(ids, owner, twin, is_wide, root, specific)


def join(ids: Ints, owner: Ints, twin: Ints, chosen: Any, root: Ints, number: Ints) -> None:
    """Union-find over links inside this process, all or `chosen` ones, with path halving.

    A root is never larger than its members. `root` is scratch.
    """
    for i in range(root.shape[0]):
        root[i] = i
    for k in range(ids.shape[0]):
        h = ids[k]
        if twin[h] < 0 or (chosen is not None and not chosen[h]):
            continue
        i, j = owner[h], owner[twin[h]]
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        while root[j] != j:
            root[j] = root[root[j]]
            j = root[j]
        root[max(i, j)] = min(i, j)
    found = 0
    for i in range(root.shape[0]):
        if root[i] == i:
            number[i] = found
            found += 1
        else:
            number[i] = number[root[i]]


# Set-up


def n_ends_of(ends: Ends) -> int:
    """How many link ends there are."""
    return ends.ids.shape[0]


def lay_sets(sets: Sets, agents: Agents, ends: Ends, room: Ints, share: Floats) -> None:
    """Lay the sets out in `room`, zero: what `Sets` keeps of it, then scratch."""
    n, n_sets, n_slots = ends.ids.shape[0], sets.total_box.shape[0], sets.part.shape[0]
    sets.ends, sets.noted = room[:n], room[n : 2 * n]
    sets.node_end, sets.node_noted = room[2 * n : 3 * n + 1], room[3 * n + 1 : 4 * n + 2]
    room = room[4 * n + 2 :]
    sets.set_node, sets.set_team = room[: n_sets + 1], room[n_sets + 1 : 2 * n_sets + 2]
    room = room[2 * n_sets + 2 :]
    sets.team, sets.share = room[:n_slots], share
    lay_ends(sets, agents, ends, room[2 * n_slots : 2 * n_slots + n_sets])
    lay_teams(sets, agents, room[n_slots : 2 * n_slots], room[2 * n_slots + n_sets :])
    sets.most_nodes, sets.most_teams = 1, 1
    for s in range(n_sets):
        sets.most_nodes = max(sets.most_nodes, sets.set_node[s + 1] - sets.set_node[s])
        sets.most_teams = max(sets.most_teams, sets.set_team[s + 1] - sets.set_team[s])


def cut_scratch(sets: Sets, room: Floats) -> None:
    """Give `Sets` what it works on from one array."""
    n = sets.most_nodes
    sets.column, sets.total = room[:n], room[n : n + N_SHOWN + N_PRODUCTS]
    room = room[n + N_SHOWN + N_PRODUCTS :]
    sets.gamma, sets.level = room[:STEPS], room[STEPS:]


def cut_work(work: Work, room: Floats) -> None:
    """Give `Work` its vectors from one array."""
    work.inflow, work.shift = room[:2], room[2]
    work.u, work.before = room[3], room[4]


def cut_sums(sums: Sums, by_team: Floats, wide: Floats, scratch: Floats) -> None:
    """Give `Sums` what it adds up in from three arrays."""
    sums.members, sums.share, sums.loss = by_team[0], by_team[1], by_team[2]
    sums.slant, sums.plus, sums.minus = by_team[3], by_team[4], by_team[5]
    sums.specific, sums.pull, sums.room = wide[0], wide[1], wide[2]
    sums.positive, sums.negative = wide[3], wide[4]
    sums.common, sums.w, sums.seen = scratch[0], scratch[1], scratch[2]
    sums.dual, sums.total = scratch[3], scratch[4]
    sums.one, sums.other = scratch[5], scratch[6]


def lay_ends(sets: Sets, agents: Agents, ends: Ends, has_across: Ints) -> None:
    """Lay the ends out node by node, sets one after the other; `has_across` is scratch, zero.

    Where a set reaches across the network, only links that do count for the balance.
    """
    n = 0
    for i in range(sets.order.shape[0]):
        a = sets.order[i]
        for k in range(agents.first_end[a], agents.first_end[a] + agents.n_ends[a]):
            sets.ends[n] = ends.ids[k]
            n += 1
            if ends.is_across[ends.ids[k]]:
                has_across[sets.number[a]] = 1
    n_nodes, n_noted, before, last = 0, 0, -1, -1
    for k in range(n):
        h = sets.ends[k]
        a = ends.owner[h]
        s = sets.number[a]
        if s != last or sets.node[a] != before:
            sets.node_end[n_nodes] = k
            sets.node_noted[n_nodes] = n_noted
            n_nodes += 1
            sets.set_node[s + 1] += 1
            last, before = s, sets.node[a]
        if ends.is_across[h] or not has_across[s]:
            sets.noted[n_noted] = h if ends.twin[h] < 0 else min(h, ends.twin[h])
            n_noted += 1
    sets.node_end[n_nodes] = n
    sets.node_noted[n_nodes] = n_noted
    for s in range(has_across.shape[0]):
        sets.set_node[s + 1] += sets.set_node[s]


def lay_teams(sets: Sets, agents: Agents, owner: Ints, size: Ints) -> None:
    """Number the teams of every set and find their shares.

    Relays are of no team; a set of relays alone has one that nobody is in. Scratch, zero: `owner`
    for the set of each of all teams, `size` for a set's agents.
    """
    owner[:] = -1
    for i in range(sets.agents.shape[0]):
        a = sets.agents[i]
        if not agents.is_relay[a]:
            owner[sets.part[a]] = sets.number[a]
            size[sets.number[a]] += 1
    for t in range(owner.shape[0]):
        s = owner[t]
        if s >= 0:
            owner[t] = sets.set_team[s + 1]  # from here on its place in the set
            sets.set_team[s + 1] += 1
    for s in range(size.shape[0]):
        sets.set_team[s + 1] = sets.set_team[s] + max(sets.set_team[s + 1], 1)
    for i in range(sets.agents.shape[0]):
        a = sets.agents[i]
        if not agents.is_relay[a]:
            sets.team[a] = owner[sets.part[a]]
            sets.share[sets.set_team[sets.number[a]] + sets.team[a]] += 1.0
    for s in range(size.shape[0]):
        for t in range(sets.set_team[s], sets.set_team[s + 1]):
            sets.share[t] /= max(size[s], 1)


def linked_agents(agent: Ints, links: Ints, group: Ints, personal: bool) -> tuple[Ints, ...]:
    """Return who is linked to whom, whether widely, and whether across a network link.

    `agent` has the slot of every task (column) at every node (row), −1 where it is not; `links`
    the rows of both ends of every network link, `group` each task's. Linked are a task's agents
    across links, tasks of a group inside every node, and if they are personal across links too.
    """
    n_nodes, n_tasks = agent.shape
    most = len(links) * n_tasks * (n_tasks if personal else 1) + n_nodes * n_tasks**2 // 2
    pairs, kinds = np.empty((2, most), np.int64), np.empty((2, most), np.uint8)
    n = link_agents(agent, links, group, personal, pairs, kinds)
    return pairs[0, :n], pairs[1, :n], kinds[0, :n], kinds[1, :n]


def link_agents(
    agent: Ints, links: Ints, group: Ints, personal: bool, pairs: Ints, kinds: Flags
) -> int:
    """Fill `pairs` and `kinds` for `linked_agents`; return how many links there are."""
    n = 0
    n_tasks = agent.shape[1]
    for i in range(links.shape[0]):
        for t in range(n_tasks):
            n = link_two(agent[links[i, 0], t], agent[links[i, 1], t], 3, pairs, kinds, n)
    for v in range(agent.shape[0]):
        for t in range(n_tasks):
            for s in range(t + 1, n_tasks):
                if group[t] == group[s]:
                    n = link_two(agent[v, t], agent[v, s], 0, pairs, kinds, n)
    if personal:
        for i in range(links.shape[0]):
            for t in range(n_tasks):
                for s in range(n_tasks):
                    if t != s and group[t] == group[s]:
                        u, v = agent[links[i, 0], t], agent[links[i, 1], s]
                        n = link_two(u, v, 2, pairs, kinds, n)
    return n


def link_two(a: int, b: int, kind: int, pairs: Ints, kinds: Flags, n: int) -> int:
    """Write the n-th link if both are there: `kind` is 1 if wide, plus 2 if across."""
    if a < 0 or b < 0:
        return n
    pairs[0, n], pairs[1, n] = a, b
    kinds[0, n], kinds[1, n] = kind & 1, kind >> 1
    return n + 1


def set_graph(s: int, number: Ints, node: Ints, ends: Ends) -> tuple[int, Ints]:
    """Return how many vertices the graph has that messages of set s travel on, and its links.

    Vertices are the nodes that links across the network join; without such links, agents. `number`
    and `node` are an agent's set and node, by slot.
    """
    joined = np.empty(2 * n_firsts_of(ends), np.int64)
    joined = joined[: join_set(s, number, node, ends, joined)]
    n = renumber(joined, np.zeros(1 + most_of(joined), np.int64))
    if n > MOST_MARKED:
        links = np.sort(joined.reshape(-1, 2), axis=1)
        return n, np.stack(np.divmod(np.unique(links[:, 0] * n + links[:, 1]), n), axis=1)
    pairs = np.empty((len(joined) // 2, 2), np.int64)
    return n, pairs[: list_pairs(joined, np.zeros((n, n), np.uint8), pairs)]


def links_across(ends: Ends) -> tuple[int, int]:
    """Count the links inside this process that run over the network, and the wide ones of them."""
    n, n_wide = 0, 0
    for i in range(ends.firsts.shape[0]):
        if ends.is_across[ends.firsts[i]]:
            n += 1
            n_wide += 1 if ends.is_wide[ends.firsts[i]] else 0
    return n, n_wide


def most_of(numbers: Ints) -> int:
    """Return the largest of some numbers, −1 if there are none."""
    most = -1
    for i in range(numbers.shape[0]):
        most = max(most, numbers[i])
    return most


def renumber(numbers: Ints, place: Ints) -> int:
    """Replace numbers by where they stand among those that occur; return how many do.

    `place` is scratch, zero, one longer than the largest.
    """
    n_found = 0
    for i in range(numbers.shape[0]):
        place[numbers[i]] = 1
    for k in range(place.shape[0]):
        if place[k]:
            place[k] = n_found
            n_found += 1
    for i in range(numbers.shape[0]):
        numbers[i] = place[numbers[i]]
    return n_found


def list_pairs(joined: Ints, is_pair: Flags, pairs: Ints) -> int:
    """List the different pairs, the smaller first, ascending; return how many there are.

    `is_pair` is scratch, zero.
    """
    for i in range(joined.shape[0] // 2):
        u, v = joined[2 * i], joined[2 * i + 1]
        is_pair[min(u, v), max(u, v)] = 1
    n = 0
    for u in range(is_pair.shape[0]):
        for v in range(u, is_pair.shape[0]):
            if is_pair[u, v]:
                pairs[n, 0], pairs[n, 1] = u, v
                n += 1
    return n


def n_firsts_of(ends: Ends) -> int:
    """How many links there are inside this process."""
    return ends.firsts.shape[0]


def join_set(s: int, number: Ints, node: Ints, ends: Ends, joined: Ints) -> int:
    """Write what the links of set s join, one pair after the other; return how many numbers."""
    n = 0
    has_across = False
    for i in range(ends.firsts.shape[0]):
        h = ends.firsts[i]
        if number[ends.owner[h]] == s and ends.is_across[h]:
            has_across = True
    for i in range(ends.firsts.shape[0]):
        h = ends.firsts[i]
        a, b = ends.owner[h], ends.owner[ends.twin[h]]
        if number[a] == s and (ends.is_across[h] or not has_across):
            joined[n] = node[a] if has_across else a
            joined[n + 1] = node[b] if has_across else b
            n += 2
    return n


def segments(n: int, slots: Ints, counts: list[int], ids: Ints, owner: Ints) -> Ints:
    """How many rows and link ends each of n agents has and where they begin, one's after another's.

    `slots` have as many rows as `counts` says, others none; `owner` has the agent of each end.
    Return the numbers of rows, where they begin, the numbers of ends, and where they begin.
    """
    found = np.zeros((4, n), np.int64)
    count_segments(slots, np.array(counts, np.int64), ids, owner, found)
    return found


def count_segments(slots: Ints, counts: Ints, ids: Ints, owner: Ints, found: Ints) -> None:
    """Fill `found`, zero, for `segments`."""
    for i in range(slots.shape[0]):
        found[0, slots[i]] = counts[i]
    for i in range(ids.shape[0]):
        found[2, owner[ids[i]]] += 1
    for i in range(1, found.shape[1]):
        found[1, i] = found[1, i - 1] + found[0, i - 1]
        found[3, i] = found[3, i - 1] + found[2, i - 1]


def arrange(keys: Places, n: int) -> tuple[Places, Ints]:
    """Sort by keys in 0 … n − 1, stably; return the order and where each key's entries begin."""
    order = np.empty(len(keys), np.int32)
    starts = np.zeros(n + 1, np.int64)
    count_keys(keys, starts, order)
    return order, starts


def count_keys(keys: Places, starts: Ints, order: Places) -> None:
    """Fill `starts` and `order` for `arrange`."""
    n = starts.shape[0] - 1
    for i in range(keys.shape[0]):
        starts[keys[i] + 1] += 1
    for k in range(n):
        starts[k + 1] += starts[k]
    for i in range(keys.shape[0]):  # meanwhile starts[k] is where the next of k goes
        order[starts[keys[i]]] = i
        starts[keys[i]] += 1
    for k in range(n, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


def order_by(slots: Ints, major: Ints, middle: Ints, minor: Ints) -> Ints:
    """Sort slots by three columns of small whole numbers, the first the weightiest; stable."""
    most = largest(slots, major, middle, minor)
    if most > 64 + 4 * len(slots):  # long ranks of few: not worth counting
        return np.asarray(slots[np.lexsort((minor[slots], middle[slots], major[slots]))])
    found, between = np.empty((2, len(slots)), np.int64)
    starts = np.empty(most + 2, np.int64)
    sort_slots(slots, major, middle, minor, starts, between, found)
    return found


def largest(slots: Ints, major: Ints, middle: Ints, minor: Ints) -> int:
    """Return the largest of some slots' numbers, at least 0."""
    most = 0
    for i in range(slots.shape[0]):
        most = max(most, major[slots[i]], middle[slots[i]], minor[slots[i]])
    return most


def sort_slots(
    slots: Ints, major: Ints, middle: Ints, minor: Ints, starts: Ints, between: Ints, out: Ints
) -> None:
    """Sort slots by three columns; scratch are `between` and `starts`, two longer than the most."""
    count_slots(slots, minor, starts, out)
    count_slots(out, middle, starts, between)
    count_slots(between, major, starts, out)


def count_slots(slots: Ints, column: Ints, starts: Ints, out: Ints) -> None:
    """Sort slots by their numbers, stably; `starts` is scratch."""
    for k in range(starts.shape[0]):
        starts[k] = 0
    for i in range(slots.shape[0]):
        starts[column[slots[i]] + 1] += 1
    for k in range(1, starts.shape[0]):
        starts[k] += starts[k - 1]
    for i in range(slots.shape[0]):
        k = column[slots[i]]
        out[starts[k]] = slots[i]
        starts[k] += 1


def mean_of_parts(common: Ints, specific: Ints, agents: Agents) -> Floats:
    """Return the mean of what those found who must agree with an agent, (slot, 2, p + 1).

    `common` and `specific` number who must, by slot; relays do not count.
    """
    n, p1 = len(common), agents.estimate.shape[2]
    out = np.empty((n, 2, p1))
    average_both(common, specific, agents, np.empty((n, p1)), np.empty(n), out)
    return out


def average_both(
    common: Ints, specific: Ints, agents: Agents, total: Floats, count: Floats, out: Floats
) -> None:
    """Set both means of every slot; `total` and `count` are scratch."""
    average_parts(common, 0, agents, total, count)
    share_out(common, 0, total, out)
    average_parts(specific, 1, agents, total, count)
    share_out(specific, 1, total, out)


def average_parts(part: Ints, c: int, agents: Agents, total: Floats, count: Floats) -> None:
    """Set the means of all parts."""
    total[:] = 0.0
    count[:] = 0.0
    for n in range(agents.used.shape[0]):
        a = agents.used[n]
        if not agents.is_relay[a]:
            count[part[a]] += 1.0
            for j in range(total.shape[1]):
                total[part[a], j] += agents.estimate[a, c, j]
    for k in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[k, j] /= max(count[k], 1.0)


def share_out(part: Ints, c: int, total: Floats, out: Floats) -> None:
    """Hand every slot its part's mean."""
    for i in range(part.shape[0]):
        for j in range(total.shape[1]):
            out[i, c, j] = total[part[i], j]
