"""Damaged messages, for hypothesis to send."""

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st


def mutations(good):
    """Damaged copies of a good message: bytes changed, cut out and put in."""
    spot = st.tuples(st.integers(0, len(good) - 1), st.integers(0, 8), st.binary(max_size=8))

    def damage(spots):
        data = bytearray(good)
        for at, n, new in spots:
            data[at : at + n] = new
        return bytes(data)

    return st.lists(spot, min_size=1, max_size=4).map(damage)


def malformed(n, good, is_refused):
    """Find n messages that are refused, no two the same."""
    found = {}
    message = st.one_of(st.binary(max_size=300), mutations(good))
    k = 0
    while len(found) < n:
        k += 1

        @seed(k)
        @settings(max_examples=50, derandomize=False, database=None, phases=[Phase.generate])
        @given(st.lists(message, min_size=30, max_size=30, unique=True))
        def look(batch):
            found.update(dict.fromkeys(data for data in batch if is_refused(data)))

        look()
    return list(found)[:n]
