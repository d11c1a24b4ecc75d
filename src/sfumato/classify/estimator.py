"""Locally linear maps as a scikit-learn estimator, for arrays.

Nothing that the guarantee rests on is read from the data: bounds and classes are arguments.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.classify.base import ClassifierModel
from sfumato.classify.locally_linear import LocallyLinear
from sfumato.data.image_codec import label_texts
from sfumato.data.spelling import Spellings
from sfumato.privacy.budget import Budget, Guarantee, Relation
from sfumato.privacy.gate import Gate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.schema import Categorical, Column, Images, Numeric, Schema

FROM_DATA = "from data"


class PrivacyLeakWarning(RuntimeWarning):
    """Something was read from private rows without being paid for: the guarantee does not hold."""


class LocallyLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Several linear maps per class, trained by noisy gradients.

    Parameters
    ----------
    epsilon, delta, relation
        The privacy budget of `fit`, for one row.
    classes
        All classes that there may be, in public. Labels outside count as the first one. "from data"
        reads them from the labels, with a warning: then the guarantee does not cover which classes
        there are. It is for trying things out.
    bounds
        The lowest and the highest value: two numbers, or two arrays with one number per feature.
        Values outside are clamped. "from data" reads them from the rows, with a warning.
    image_shape
        (height, width, channels), where a row holds the pixels of an image.
    maps, beta, frequencies, projection, rate, epochs, clip, learning_rate
        See `LocallyLinear`.
    random_state
        An integer that fixes the first weights, and never noise: two fits differ.
    ledger, dataset
        The ledger file that the spend is recorded in, and under which name; by default the user's
        own. Each fit is a spend: a search over settings is as many as it has fits.

    Attributes
    ----------
    classes_, n_features_in_
        As in scikit-learn.
    model_
        The trained model, with `explain` and `maps`.
    guarantee_
        What is promised; None where something was read from the data.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((2000, 2))
    >>> y = (x[:, 0] > x[:, 1]).astype(int)
    >>> model = LocallyLinearClassifier(epsilon=5.0, classes=(0, 1), epochs=5).fit(x, y)
    >>> model.predict(x).shape, model.guarantee_.epsilon <= 5
    ((2000,), True)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "add-remove",
        classes: Sequence[Any] | Literal["from data"] | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | Literal["from data"] = (0.0, 1.0),
        image_shape: tuple[int, int, Literal[1, 3]] | None = None,
        maps: int | None = None,
        beta: float = LocallyLinear.beta,
        frequencies: int | None = LocallyLinear.frequencies,
        projection: int | None = None,
        rate: float = LocallyLinear.rate,
        epochs: float = LocallyLinear.epochs,
        clip: float = LocallyLinear.clip,
        learning_rate: float = LocallyLinear.learning_rate,
        random_state: int = 0,
        ledger: str | Path | None = None,
        dataset: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.classes = classes
        self.bounds = bounds
        self.image_shape = image_shape
        self.maps = maps
        self.beta = beta
        self.frequencies = frequencies
        self.projection = projection
        self.rate = rate
        self.epochs = epochs
        self.clip = clip
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: Any) -> LocallyLinearClassifier:
        """Train on rows X and labels y, within the budget."""
        # A list is canonicalised label by label: an array of it would be of one type.
        given = y if isinstance(y, list | tuple) else None
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = self._public_classes(y)
        self._low, self._high = self._public_bounds(X)
        method = LocallyLinear(
            target=None if self.image_shape else "label",
            maps=self.maps,
            beta=self.beta,
            frequencies=self.frequencies,
            projection=self.projection,
            rate=self.rate,
            epochs=self.epochs,
            clip=self.clip,
            learning_rate=self.learning_rate,
            seed=self.random_state,
        )
        budget = Budget(epsilon=self.epsilon, delta=self.delta, relation=Relation(self.relation))
        model = method.fit(
            self._rows(X, _numbers(y if given is None else given, self.classes_)),
            self._schema(),
            budget,
            Run(
                ledger=Ledger(self.ledger) if self.ledger else None,
                dataset=self.dataset,
                gate=Gate(None),
            ),
        )
        # The mark goes wherever the model goes: into its file and onto its certificate.
        guarantee = replace(model.guarantee, caveats=self._caveats)
        self.model_: ClassifierModel = replace(model, guarantee=guarantee)
        self.guarantee_: Guarantee | None = None if guarantee.caveats else guarantee
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.model_.predict_proba(self._rows(X, np.zeros(len(X), np.int64)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # the noise is never seeded
        return tags

    def _public_classes(self, y: NDArray[Any]) -> NDArray[Any]:
        if self._text(self.classes) == FROM_DATA:
            warnings.warn("the classes were read from the labels", PrivacyLeakWarning, stacklevel=3)
            found: NDArray[Any] = np.unique(y)
        elif self.classes is None:
            raise ValueError(
                "classes must list all classes that there may be: reading them from the labels "
                f"would leak (pass '{FROM_DATA}' to try things out)"
            )
        else:
            found = np.unique(np.asarray(self.classes))
        if len(found) < 2:
            raise ValueError(f"there must be at least two classes, got {len(found)} class")
        return found

    def _public_bounds(self, X: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        if self._text(self.bounds) == FROM_DATA:
            warnings.warn("the bounds were read from the rows", PrivacyLeakWarning, stacklevel=3)
            low, high = X.min(axis=0), X.max(axis=0)
            return low, np.where(high > low, high, low + 1)
        low, high = (np.broadcast_to(np.asarray(b, np.float64), X.shape[1]) for b in self.bounds)
        if not (low < high).all():
            raise ValueError("bounds must be two values, or arrays of them, the lower one first")
        return low, high

    def _schema(self) -> Schema:
        labels = tuple(range(len(self.classes_)))
        if self.image_shape:
            height, width, channels = self.image_shape
            images = Images(height=height, width=width, channels=channels, classes=labels)
            return Schema(images=images)
        columns: dict[str, Column] = {
            f"x{index}": Numeric(low=float(low), high=float(high))
            for index, (low, high) in enumerate(zip(self._low, self._high, strict=True))
        }
        return Schema(columns=columns | {"label": Categorical(values=labels)})

    def _rows(self, X: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
        if self.image_shape:
            unit = (np.clip(X, self._low, self._high) - self._low) / (self._high - self._low)
            return np.rint(255 * unit).astype(np.uint8).reshape(-1, *self.image_shape), labels
        columns = {f"x{index}": column for index, column in enumerate(X.T)}
        return pa.table({**columns, "label": labels})

    @property
    def _caveats(self) -> tuple[str, ...]:
        """What was read from the private data."""
        read = {"classes": self.classes, "bounds": self.bounds}
        return tuple(
            f"the {name} were read from the private data"
            for name, value in read.items()
            if self._text(value) == FROM_DATA
        )

    @staticmethod
    def _text(value: Any) -> str | None:
        return value if isinstance(value, str) else None


def _numbers(labels: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Give the place of each label among the classes; 0 for one that is not listed."""
    found = Spellings(classes.tolist()).find(pa.array(label_texts(labels), pa.string()))
    return np.asarray(pc.fill_null(found, 0), np.int64)
