import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from worlds import EXAMPLES, examples

settings.register_profile(
    "dtsvm",
    examples(100),
    deadline=None,
    derandomize=EXAMPLES <= 1,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("dtsvm")

# A shell that runs this in the background has Ctrl-C ignored, and all children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Begin with files that have slow tests, so that no core waits for the last of them."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def rng():
    return np.random.default_rng(20_160_625)
