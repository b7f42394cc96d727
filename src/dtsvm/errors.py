"""What can go wrong, for every folder to raise and the command line to print.

The whole tree::

    DtsvmError                    exit_code = 1
    ├── DataError                 rows, files, labels                 (also a ValueError)
    ├── NetworkError              nodes, links, groups that cannot
    │                             hear each other                     (also a ValueError)
    ├── ParameterError            a setting outside its range         (also a ValueError)
    ├── ModelFileError            a saved model or state              (also a ValueError)
    └── MissingExtraError         an optional package is absent       (also an ImportError)

    sklearn.exceptions.ConvergenceWarning
    └── NotConvergedWarning       training stopped above its tolerance

    UserWarning
    ├── SlowKernelWarning         nothing was compiled: the same answers, slowly
    └── StrangeRowsWarning        new rows do not look like those trained on
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class NotConvergedWarning(UserWarning):
        """Training stopped before its residuals were below the tolerance."""


__all__ = [
    "DataError",
    "DtsvmError",
    "MissingExtraError",
    "ModelFileError",
    "NetworkError",
    "NotConvergedWarning",
    "ParameterError",
    "SlowKernelWarning",
    "StrangeRowsWarning",
    "did_you_mean",
]

# A table may have hundreds of columns; an error message is one sentence.
_MOST_SHOWN = 12


class DtsvmError(Exception):
    """Any error this package raises on purpose.

    Attributes
    ----------
    exit_code : int
        What the command line exits with.
    """

    exit_code = 1


class DataError(DtsvmError, ValueError):
    """Rows, files or labels that cannot be used."""


class NetworkError(DtsvmError, ValueError):
    """Nodes, links or groups that do not fit together."""


class ParameterError(DtsvmError, ValueError):
    """A setting outside its range."""


class ModelFileError(DtsvmError, ValueError):
    """A saved model or state that cannot be read."""


class MissingExtraError(DtsvmError, ImportError):
    """An optional package is needed and absent."""


class SlowKernelWarning(UserWarning):
    """Nothing was compiled: the same answers come slowly."""


class StrangeRowsWarning(UserWarning):
    """New rows do not look like those trained on: another unit, other categories."""


def did_you_mean(value: object, choices: Iterable[object]) -> str:
    """Say what could have been chosen, and which choice is closest to `value`.

    Parameters
    ----------
    value : object
        What was given.
    choices : iterable of object
        What would have been accepted, in the order to list it.

    Returns
    -------
    str
        The tail of an error message.

    Examples
    --------
    >>> did_you_mean("rng", ["complete", "ring", "line"])
    "Choose from complete, ring, line. Did you mean 'ring'?"
    >>> did_you_mean("xyz", ["complete", "ring", "line"])
    'Choose from complete, ring, line.'
    """
    names = [str(choice) for choice in choices]
    # Case is ignored in the comparison: "Label" for "label" is the commonest slip.
    by_lower = {name.lower(): name for name in reversed(names)}
    closest = difflib.get_close_matches(str(value).lower(), by_lower, n=1)
    shown = ", ".join(names[:_MOST_SHOWN])
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    tail = f"Choose from {shown}{more}."
    return f"{tail} Did you mean {by_lower[closest[0]]!r}?" if closest else tail


def __getattr__(name: str) -> Any:
    """Make the warning that is one of scikit-learn's when it is first asked for."""
    if name != "NotConvergedWarning":
        raise AttributeError(f"module 'dtsvm.errors' has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    said = "Training stopped before its residuals were below the tolerance."
    made = type(name, (ConvergenceWarning,), {"__doc__": said, "__module__": __name__})
    globals()[name] = made
    return made
