"""Base class of pipeline steps: names and widths of columns, frames; without scikit-learn."""

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import inputs
from oklnumba.core.checks import require_choice, require_list


class Transformer:
    """Base of feature maps, samplers and the standardizer, which are steps of pipelines.

    A subclass has ``fit``, ``transform`` decorated by ``in_frames``, and ``_names_out(columns)``.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the data seen by ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if that data was a frame with names.
    """

    _requires_fit = True
    fit: Callable[..., Any]
    _names_out: Callable[[list[str]], list[str]]

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
        """Return ``fit(X).transform(X)``, shape (n, r)."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the features, shape (r,).

        ``input_features`` names the columns. None: those of the frame in ``fit``, else x0, x1, ...
        """
        fitted = getattr(self, "feature_names_in_", None)
        count = getattr(self, "n_features_in_", None)
        if count is None and (input_features is None or self._requires_fit):
            raise not_fitted(f"{type(self).__name__} knows no columns yet; call fit(X) first")
        if input_features is None:
            columns = [f"x{i}" for i in range(count or 0)] if fitted is None else list(fitted)
        else:
            columns = require_list("input_features", input_features, "a list of column names")
        if fitted is not None and columns != list(fitted):
            raise ValueError(f"input_features is not equal to feature_names_in_, {list(fitted)}")
        if count is not None and len(columns) != count:
            what = f"have length equal to number of features ({count}), got {len(columns)}"
            raise ValueError(f"input_features should {what}")
        return np.array(self._names_out(columns), dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let ``transform`` return arrays ("default") or frames ("pandas", "polars"); return self.

        None changes nothing. If it is never called, ``sklearn.set_config`` decides.
        """
        if transform is not None:
            require_choice("transform", transform, ("default", "pandas", "polars"))
            # scikit-learn's clone copies the attribute of this name.
            self._sklearn_output_config = {"transform": transform}
        return self

    def _remember_columns(self, X: Any, d: int) -> None:
        """Store the width and the column names of data that passed the checks."""
        self.n_features_in_ = d
        vars(self).pop("feature_names_in_", None)
        if names := _get_column_names(X):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _compare_columns(self, X: Any) -> None:
        """Raise the errors of scikit-learn if X has other columns than the data of ``fit``."""
        names, fitted = _get_column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None and names != list(fitted):
            raise ValueError(_describe_difference(names, list(fitted)))
        count, width = getattr(self, "n_features_in_", None), _get_width(X)
        if count is not None and width and width != count:
            needs = f"{type(self).__name__} is expecting {count} features as input"
            raise ValueError(f"X has {width} features, but {needs}; call fit to start afresh")

    def __sklearn_is_fitted__(self) -> bool:
        return not self._requires_fit or hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(sparse=True),
            requires_fit=self._requires_fit,
        )


def in_frames(transform: Callable) -> Callable:
    """Decorate ``transform``: compare X with ``fit``, return what ``set_output`` chose."""

    @functools.wraps(transform)
    def wrapped(self: Transformer, X: Any) -> Any:
        self._compare_columns(X)
        Z = np.asarray(transform(self, X))
        sklearn = sys.modules.get("sklearn")
        default = sklearn.get_config()["transform_output"] if sklearn else "default"
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", default)
        if kind == "default":
            return Z
        columns = None  # names of ``fit``, if there was one
        if not hasattr(self, "n_features_in_"):
            columns = _get_column_names(X) or [f"x{i}" for i in range(_get_width(X) or 0)]
        names = self.get_feature_names_out(columns).tolist()
        library = import_module(kind)
        if kind == "polars":
            return library.DataFrame(Z, schema=names, orient="row")
        index = X.index if isinstance(X, library.DataFrame) else None
        return library.DataFrame(Z, columns=names, index=index)

    return wrapped


def _get_column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a frame; None unless all are text."""
    names = inputs.column_names(X) if inputs.is_frame(X) else None
    return names if names and all(isinstance(name, str) for name in names) else None


def _get_width(X: Any) -> int | None:
    try:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    except ValueError:  # ragged lists
        return None
    return shape[1] if len(shape) == 2 else None


def not_fitted(message: str) -> ValueError:
    """Return a NotFittedError of scikit-learn if that is loaded, else a ValueError."""
    exceptions = sys.modules.get("sklearn.exceptions")
    return exceptions.NotFittedError(message) if exceptions else ValueError(message)


def _describe_difference(names: list[str], fitted: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    new, missing = {*names} - {*fitted}, {*fitted} - {*names}
    for some, when in ((new, "unseen at fit time"), (missing, "seen at fit time, yet now missing")):
        lines += [f"Feature names {when}:", *(f"- {name}" for name in sorted(some))] if some else []
    if not new and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join([*lines, ""])
