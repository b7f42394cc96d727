import sys
from pathlib import Path

import pytest

pytest.importorskip("google.protobuf")
pytest.importorskip("grpc")
sys.path.insert(0, str(Path(__file__).parent))
