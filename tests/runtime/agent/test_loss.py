"""Ten real processes over TLS, three messages in ten lost, each killed and revived once."""

import time

import numpy as np
import pytest
from forks import ForkedAgents
from meetings import cold, make_blocks
from sites import farthest, make_site, status

from dtsvm import Network
from dtsvm.runtime.agent.site.checkpoint import kept_round
from dtsvm.svm.model_file import load_model
from worlds import seeds

TEN = [f"n{i}" for i in range(10)]
SETTINGS = {"C": 0.1, "tol": 1e-8}
LOSS = 0.3
TIMING = {
    "round_seconds": 0.05, "evict_seconds": 3.0,
    "heartbeat_seconds": 0.2, "checkpoint_seconds": 0.2,
}  # fmt: skip


def kept(folder, name):
    """The round in a node's checkpoint; the checkpoint and the model, if any, are whole."""
    if (folder / name / "model.json").exists():
        load_model(folder / name / "model.json")
    path = folder / name / "checkpoint.npz"
    return kept_round(path.read_bytes()) if path.exists() else 0


def kill_and_revive_each(agents, folder, rng):
    """Kill one after another, several being dead at a time; return what each had kept then."""
    now = time.monotonic()
    times = now + np.cumsum(rng.uniform(0.2, 1.2, len(TEN)))
    kills = dict(zip(rng.permutation(TEN).tolist(), times.tolist(), strict=True))
    back = {name: at + rng.uniform(0.1, 5.0) for name, at in kills.items()}
    had = {}
    while back:
        now = time.monotonic()
        for name in [n for n, at in kills.items() if at <= now]:
            agents.running[name].kill()
            agents.running.pop(name).wait()
            had[name] = kept(folder, name)
            del kills[name]
        for name in [n for n, at in back.items() if at <= now and n not in kills]:
            agents.start(name)
            del back[name]
        time.sleep(0.05)
    return had


@pytest.mark.parametrize("seed", seeds(1))
def test_loss_and_every_process_killed_once_still_end_at_the_pooled_optimum(seed, tmp_path):
    rng = np.random.default_rng(seed)
    network = Network.random(TEN, degree=0.4, seed=seed)
    blocks = make_blocks(TEN, ["one"], n=8, seed=seed)
    make_site(tmp_path, network, blocks, SETTINGS, **TIMING)
    with ForkedAgents(tmp_path, LOSS, seed) as agents:
        for name in TEN:
            agents.start(name)
        agents.wait_for(lambda: all(kept(tmp_path, name) > 0 for name in TEN))
        had = kill_and_revive_each(agents, tmp_path, rng)
        assert sorted(had) == TEN
        assert agents.n_started == 20
        agents.settle(TEN, cold(network, blocks, SETTINGS))
        away = farthest(tmp_path, TEN, cold(network, blocks, SETTINGS))
        rounds = [status(tmp_path, name)["round"] for name in TEN]
        print(f"seed {seed}: {away:.1e} from the pooled optimum after {max(rounds)} rounds")
        assert away < 1e-3
        for name in TEN:
            assert 0 < had[name] <= kept(tmp_path, name)
            assert "Traceback" not in agents.log(name)
