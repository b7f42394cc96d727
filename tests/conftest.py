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


@pytest.fixture
def rng():
    return np.random.default_rng(20_160_625)
