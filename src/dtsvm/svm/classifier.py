"""One trained classifier, ready to predict and to hand to anything that speaks scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_array

from dtsvm.errors import DataError

__all__ = ["LinearClassifier"]


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """A linear classifier that is already trained.

    Parameters
    ----------
    coef : array-like of shape (n_features,) or (n_classes, n_features)
        Weights; of more than two labels one row each.
    intercept : float or array-like of shape (n_classes,)
        Bias.
    classes : sequence of labels
        The negative label and the positive one; or all labels.
    is_finished : bool, default=False
        Whether its task has left training.

    Examples
    --------
    >>> from dtsvm.svm import LinearClassifier
    >>> clf = LinearClassifier([1.0, -1.0], 0.5, ["no", "yes"])
    >>> clf.predict([[1.0, 0.0], [0.0, 2.0]]).tolist()
    ['yes', 'no']
    """

    def __init__(
        self, coef: ArrayLike, intercept: ArrayLike, classes: ArrayLike, is_finished: bool = False
    ) -> None:
        self.coef = coef
        self.intercept = intercept
        self.classes = classes
        self.is_finished = is_finished

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights, of shape (1, n_features) or (n_classes, n_features)."""
        return np.atleast_2d(np.asarray(self.coef, float))

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Bias, of shape (1,) or (n_classes,)."""
        return np.atleast_1d(np.asarray(self.intercept, float))

    @property
    def classes_(self) -> NDArray[Any]:
        """The negative label and the positive one; or all labels."""
        return np.asarray(self.classes)

    @property
    def n_features_in_(self) -> int:
        """How many features a row has."""
        return int(self.coef_.shape[1])

    def fit(self, X: ArrayLike, y: ArrayLike) -> LinearClassifier:
        """Refuse: this classifier is the result of training."""
        raise DataError("A LinearClassifier is already trained; train with DTSVM or a Session.")

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return xᵀw + b for every row; of more than two labels a value each."""
        rows = check_array(X, input_name="X", accept_sparse="csr")
        if rows.shape[1] != self.n_features_in_:
            raise DataError(
                f"X has {rows.shape[1]} features, but the classifier expects {self.n_features_in_}."
            )
        if len(self.coef_) == 1:
            return np.asarray(rows @ self.coef_[0] + self.intercept_[0])
        return np.asarray(rows @ self.coef_.T + self.intercept_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return a label for every row."""
        values = self.decision_function(X)
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def __sklearn_is_fitted__(self) -> bool:
        return True
