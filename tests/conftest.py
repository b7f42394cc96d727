import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from worlds import EXAMPLES

settings.register_profile(
    "dtsvm",
    deadline=None,
    derandomize=EXAMPLES == 1,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("dtsvm")


@pytest.fixture
def rng():
    return np.random.default_rng(20_160_625)
