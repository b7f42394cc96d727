"""A neighbour that lies in what it adds to masked sums: what it does to its own node."""

import numpy as np


def term_of(change):
    """Change what the node adds to the sums at checks."""

    def lie(node):
        true = node.balancer._term
        node.balancer._term = lambda team, found: change(true(team, found), node)

    return lie


def tally_of(change):
    """Change what the node's rows contribute to certificates."""

    def lie(node):
        true = node.certifier._tally
        node.certifier._tally = lambda team, look: change(true(team, look), node)

    return lie


def found_of(change):
    """Change the node's estimates in the average of a certificate."""

    def lie(node):
        true = node.certifier._found
        node.certifier._found = lambda team: change(true(team), node)

    return lie


def put(*places, value):
    def change(term, _):
        term[list(places)] = value
        return term

    return change


def add(first, last, size):
    def change(term, _):
        term[first:last] += size
        return term

    return change


def wrong_masks(node):
    node.sums._secrets = lambda team, around: lambda: [(bytes(32), True)]
    for wave in node.sums.waves.values():
        wave.secrets = lambda: [(bytes(32), True)]


def withholds_the_second_sum(node):
    true = node.certifier._add
    node.certifier._add = lambda wave, term: true(wave, term) if wave.done % 2 == 0 else None


def changes_its_mind(node):
    """The same sum has another term every time it is told."""
    true = node.sums.parcels

    def parcels(neighbour):
        for wave in node.sums.waves.values():
            if wave._mine is not None:
                wave._mine = wave._mine + np.uint64(2**40)
        return true(neighbour)

    node.sums.parcels = parcels


def says_nothing_of_sums(node):
    node.sums.parcels = lambda neighbour: b""


def forged_totals(change):
    """As the root of the tree, hand down other totals, one to each child."""

    def lie(node):
        true = node.sums.parcels

        def parcels(neighbour):
            kept = {}
            for name, wave in node.sums.waves.items():
                kept[name] = wave._down
                wave._down = change(wave._down, neighbour)
            out = true(neighbour)
            for name, wave in node.sums.waves.items():
                wave._down = kept[name]
            return out

        node.sums.parcels = parcels

    return lie


def other_for_each(down, neighbour):
    words = np.frombuffer(down, "<u8").copy()
    words[1::2] += np.uint64(ord(neighbour[0]))
    return words.tobytes()


def begins_every_sum_anew(node):
    true = node.sums.parcels

    def parcels(neighbour):
        for wave in node.sums.waves.values():
            wave.wanted += wave._mine is not None
        return true(neighbour)

    node.sums.parcels = parcels


def handed(change):
    """Change the offsets that the node adds up, after it was told something."""

    def lie(node):
        true = node.handover._term
        node.handover._term = lambda team: change(true(team), node)
        node.presence.told += 1

    return lie


def at_random(term, node):
    """Other offsets in every sum, as large as links can leave."""
    most = node.bounds("one").pull / 100.0
    return term + most * np.random.default_rng(node.round).normal(size=len(term))


def in_turns(place, one, other):
    """Two values, each in its turn."""
    said = []

    def change(term, _):
        said.append(0)
        term[place] = one if len(said) % 2 else other
        return term

    return change


# Loss, then Σλ of both classes and their slant; the box of all rows is last.
INSIDE = {
    "wrong masks": wrong_masks,
    "levels as high as can be": term_of(lambda term, _: _level(term, [6.9, 0.69, 1.38])),
    "levels as low as can be": term_of(lambda term, _: _level(term, [-4.6, -0.69, -1.38])),
    "levels beyond the band": term_of(lambda term, _: _level(term, [60.0, 60.0, 60.0])),
    "more agents than it has": term_of(put(0, value=4.0)),
    "fewer agents than none": term_of(put(0, value=-3.0)),
    "half an agent": term_of(put(0, value=0.5)),
    "links that carry everything": term_of(put(9, value=1e11)),
    "links that show nothing": term_of(put(*range(5, 11), value=0.0)),
    "squares below zero": term_of(put(*range(5, 11), value=-1e3)),
    "moves that make others leap": term_of(lambda term, node: _moves(term)),
    "moves of one node alone": term_of(put(*range(11, 32), value=1e9)),
    "snapshots that it has not": term_of(put(4, value=2.0)),
    "doubts at every check": term_of(put(-1, value=1.0)),
    "many doubts at every check": term_of(put(-1, value=5.0)),
    "an average of its own": found_of(lambda term, _: term + 1e3),
    "an average turned round": found_of(lambda term, _: -9.0 * term),
    "an average a little off": found_of(lambda term, _: 1.02 * term),
    "no loss": tally_of(put(0, value=0.0)),
    "loss below zero": tally_of(put(0, value=-1e3)),
    "loss without end": tally_of(put(0, value=1e11)),
    "multipliers beyond its box": tally_of(put(1, 2, value=1e4)),
    "multipliers below zero": tally_of(put(1, 2, value=-5.0)),
    "a pull that is none": tally_of(add(4, 9, 1e3)),
    "room without end": tally_of(add(9, 14, 1e6)),
    "a box without end": tally_of(put(-1, value=1e11)),
    "a box below zero": tally_of(put(-1, value=-1e3)),
    "a loss of two values in turns": tally_of(in_turns(0, 0.0, 50.0)),
    "links that carry two values in turns": term_of(in_turns(9, 0.0, 1e3)),
    "all but its rows": tally_of(lambda term, _: 0.0 * term),
    "the second sum withheld": withholds_the_second_sum,
    "another term every time": changes_its_mind,
    "no word of sums": says_nothing_of_sums,
    "another total for each child": forged_totals(other_for_each),
    "every sum begun anew": begins_every_sum_anew,
    "offsets out of nowhere": handed(lambda term, _: term + 3.0),
    "offsets without end": handed(lambda term, _: term + 2.0**39),
    "other offsets in every sum": handed(at_random),
}


def _level(term, logs):
    term[0], term[1:4] = 1.0, logs
    return term


def _moves(term):
    """A Gram matrix of which the best mixture is far outside."""
    rng = np.random.default_rng(3)
    moves = rng.normal(size=(6, 2)) * 1e3
    moves[1:] = moves[0] * (1.0 + 1e-7 * rng.normal(size=(5, 2)))
    term[4] = 1.0
    term[11:32] = (moves @ moves.T)[np.triu_indices(6)]
    return term
