"""The tracks of one question trained over a node's links, all lanes in the same rounds.

A round waits for a letter of every neighbour; nobody goes on without. Who is silent for long is
dropped from the roster, and then all begin anew (`chooser`). A letter that was lost is sent again.
At checks all wait for one sum over the network, of all lanes; looks at certificates go on beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.problem import Settings
from dtsvm.problem.track import Track
from dtsvm.runtime.agent.node.bench import N_LEVEL, Bench, Kept, Where
from dtsvm.runtime.agent.node.looks import Looks
from dtsvm.runtime.agent.node.masks import MOST
from dtsvm.runtime.agent.node.wave import Parcel, Wave
from dtsvm.runtime.privacy.veil import Veil

__all__ = ["Telling", "Training"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
IS_CHECK, IS_TWICE = 1, 2  # x and z are told; both parts are the same and told once
MOST_AT_ONCE = 50  # rounds of a node without neighbours before others have their turn


class Letter(NamedTuple):
    """What a neighbour told in a round: of which lanes, and their numbers, not yet looked at."""

    flags: int
    numbers: Ints
    values: bytes


class Telling:
    """What neighbours are told of one wave: what is new, at once; all of it, once in a while."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self._told: dict[str, tuple[float, Parcel | None]] = {}
        self._seen: dict[str, tuple[int, Parcel]] = {}

    def parcel(self, neighbour: str, now: float, seconds: float) -> Parcel | None:
        """Return what a neighbour is to be told now, if anything."""
        wave = self.wave
        then, told = self._told.get(neighbour, (-np.inf, None))
        changes, parcel = self._seen.get(neighbour, (-1, Parcel()))
        if changes != wave.changes:
            parcel = wave.parcel(neighbour)
            self._seen[neighbour] = wave.changes, parcel
        if parcel == Parcel():
            return None
        is_owed = neighbour == wave.tree.parent  # it waits to hear that what it told has come
        has_news = parcel != told and bool(parcel.up or parcel.down or is_owed)
        if not has_news and now - then < seconds:
            return None
        self._told[neighbour] = now, parcel
        return parcel


class Training:
    """One node's part in training the tracks of a question.

    Parameters
    ----------
    tracks : sequence of Track
        What is trained.
    where : Where
        The node's place in the network.
    settings : Settings
        Of every lane, but for C.
    veil : Veil
        What stands between rows and messages.
    waves : (Wave, Wave)
        For looks and for checks.
    kept : dict of str to Kept
        Where lanes stood before, by name.
    """

    def __init__(
        self,
        tracks: Sequence[Track],
        where: Where,
        settings: Settings,
        veil: Veil,
        waves: tuple[Wave, Wave],
        kept: dict[str, Kept],
    ) -> None:
        self.tracks, self.where = list(tracks), where
        kinds: dict[str, list[Track]] = {}
        for track in (one for one in tracks if one.lanes):
            kinds.setdefault(track.kind, []).append(track)
        self.benches: list[Bench] = []
        first = 0
        for some in kinds.values():
            bench = Bench(some, first, where, settings, veil)
            bench.go_on(kept)
            self.benches.append(bench)
            first += len(bench.lanes)
        self.looks = Looks(self.benches, waves[0], settings, len(where.names))
        self.waves = {"l": Telling(waves[0]), "v": Telling(waves[1])}
        self._levels = waves[1]
        self.n_rounds = 0  # that have ended
        self.complaints: list[tuple[str, str]] = []  # neighbours, and what was wrong
        self._is_in_round = self._is_checking = False
        self._term = np.zeros((0, N_LEVEL))  # what this node added at the last check
        self._letters: dict[str, dict[int, Letter]] = {name: {} for name in where.neighbours}
        self._sent: dict[int, dict[str, bytes]] = {}  # of this round and the last, by neighbour
        self._theirs = dict.fromkeys(where.neighbours, 0)  # rounds that neighbours are in
        self._told_at = dict.fromkeys(where.neighbours, -np.inf)

    # Hearing

    def hear(self, peer: str, data: bytes) -> None:
        """Keep a letter; refuse one that cannot be of any round that is due."""
        head = np.frombuffer(data, "<u4", 3)
        number, flags, n = head.tolist()
        current = self.n_rounds + 1
        self._theirs[peer] = max(self._theirs[peer], number)
        if not current <= number <= current + 1:
            return  # of a round that is over
        numbers = np.frombuffer(data, "<u4", n, 12).astype(np.int64)
        if (np.diff(numbers) <= 0).any():
            raise ValueError("its lanes are not in order")
        self._letters[peer][number] = Letter(flags, numbers, data[12 + 4 * n :])

    # Going on

    def step(self, now: float, seconds: float) -> dict[str, list[bytes]]:
        """Go as far as what was heard allows; return letters for neighbours.

        What was told is told again after so many seconds without a round.
        """
        said: dict[str, list[bytes]] = {}
        for _ in range(MOST_AT_ONCE):
            self._look()
            if self.looks.is_over or not self._go_on(said, now):
                break
        if not self.looks.is_over:
            self._repeat(said, now, seconds)
        return said

    def _look(self) -> None:
        if self.looks.step(self.n_rounds):
            done = set(self.looks.found)
            if not self._is_in_round:
                self._drop(done)

    def _drop(self, done: set[int]) -> None:
        for bench in self.benches:
            if any(lane.number in done for lane in bench.active):
                bench.drop(done)

    def _go_on(self, said: dict[str, list[bytes]], now: float) -> bool:
        """Do the next thing that can be done; say whether there was one."""
        if self._is_checking:
            if self._levels.done < self.n_rounds or self._levels.total is None:
                return False
            self._follow(self._levels.total)
            return True
        if not self._is_in_round:
            self._begin(said, now)
            return True
        number = self.n_rounds + 1
        if any(number not in letters for letters in self._letters.values()):
            return False
        self._finish(number)
        return True

    def _begin(self, said: dict[str, list[bytes]], now: float) -> None:
        self._drop(set(self.looks.found))
        self._is_in_round = True
        number = self.n_rounds + 1
        for bench in self.benches:
            bench.solve()
        letters = {name: self._letter(name, number) for name in self.where.neighbours}
        last = self._sent.get(number - 1)
        self._sent = {number: letters} if last is None else {number - 1: last, number: letters}
        for name, letter in letters.items():
            said.setdefault(name, []).append(letter)
            self._told_at[name] = now

    def _letter(self, neighbour: str, number: int) -> bytes:
        parts = [bench.told_to(neighbour) for bench in self.benches]
        is_twice = all(np.array_equal(v[..., 0, :], v[..., 1, :]) for _, v in parts)
        flags = IS_CHECK * self.benches[0].is_check + IS_TWICE * is_twice
        lanes = np.concatenate([numbers for numbers, _ in parts])
        head = np.array([number, flags, len(lanes), *lanes], "<u4")
        values = [v[..., 0, :] if is_twice else v for _, v in parts]
        return b"".join(
            [head.tobytes(), *(np.ascontiguousarray(v, "<f8").tobytes() for v in values)]
        )

    def _finish(self, number: int) -> None:
        is_check = self.benches[0].is_check
        for name, letters in self._letters.items():
            try:
                self._read(name, letters.pop(number), is_check)
            except ValueError as error:  # what it told of this round is not taken in
                self.complaints.append((name, str(error)))
        for bench in self.benches:
            bench.finish()
        self.n_rounds, self._is_in_round = number, False
        if is_check:
            terms = np.concatenate([bench.measured() for bench in self.benches])
            self._term = np.clip(np.nan_to_num(terms), -MOST, MOST)
            self._levels.begin(number, self._term.ravel())
            self._is_checking = True

    def _read(self, name: str, letter: Letter, is_check: bool) -> None:
        flags, numbers, data = letter
        if bool(flags & IS_CHECK) != is_check:
            raise ValueError("it tells something else than this round is for")
        parts, at = 1 if flags & IS_TWICE else 2, 0
        for bench in self.benches:
            first = bench.lanes[0].number
            mine = numbers[(numbers >= first) & (numbers < first + len(bench.lanes))]
            shape = (len(mine), *((2,) if is_check else ()), parts, bench.state.n_features + 1)
            n = int(np.prod(shape))
            values = np.frombuffer(data, "<f8", n, at).reshape(shape)
            at += 8 * n
            if parts == 1:
                values = np.concatenate([values, values], axis=-2)
            bench.hear(name, mine, values)

    def _follow(self, total: Floats) -> None:
        at, shown = 0, total.reshape(-1, N_LEVEL)
        for bench in self.benches:
            some = slice(at, at + len(bench.lanes))
            bench.follow(shown[some], self._term[some])
            at = some.stop
        self._is_checking = False

    def _repeat(self, said: dict[str, list[bytes]], now: float, seconds: float) -> None:
        """Tell neighbours again what they may lack, when nothing was told for a while."""
        for name, then in self._told_at.items():
            if now - then >= seconds:
                wanted = sorted({self._theirs[name], max(self._sent, default=0)})
                again = [self._sent[k][name] for k in wanted if k in self._sent]
                said.setdefault(name, []).extend(again)
                self._told_at[name] = now

    # What is known of it

    @property
    def found(self) -> list[dict[str, Floats]] | None:
        """What lanes found, track by track; None before all are certified."""
        if not self.looks.is_over:
            return None
        out: dict[str, dict[str, Floats]] = {track.name: {} for track in self.tracks}
        for bench in self.benches:
            for lane in bench.lanes:
                out[lane.track.name][lane.place] = self.looks.found[lane.number]
        return [out[track.name] for track in self.tracks]

    @property
    def gaps(self) -> list[float]:
        """The worst gap of each track that there was something to train of."""
        worst: dict[str, float] = {}
        for _, lane in self.looks.lanes:
            name, gap = lane.track.name, self.looks.gaps.get(lane.number, 0.0)
            worst[name] = max(worst.get(name, 0.0), gap)
        return [*worst.values()]

    @property
    def n_certified(self) -> int:
        """How many tracks have all their answers."""
        lacking = {
            lane.track.name for _, lane in self.looks.lanes if lane.number not in self.looks.found
        }
        return sum(track.name not in lacking for track in self.tracks)

    @property
    def waits_for(self) -> set[str]:
        """The neighbours whose letter, or whose part of a sum, this node waits for."""
        number = self.n_rounds + 1
        late = {name for name, letters in self._letters.items() if number not in letters}
        sums = {name for telling in self.waves.values() for name in telling.wave.lacks()}
        return (late if self._is_in_round else set()) | sums

    @property
    def residual(self) -> float:
        """The worst residual of the lanes that train."""
        return max((bench.residual for bench in self.benches if bench.active), default=0.0)

    def keep(self) -> dict[str, Kept]:
        """Return where lanes stand, by name."""
        found: dict[str, Kept] = {}
        for bench in self.benches:
            found |= bench.keep()
        return found
