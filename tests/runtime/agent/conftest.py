import pytest

pytest.importorskip("google.protobuf")
pytest.importorskip("cryptography")
