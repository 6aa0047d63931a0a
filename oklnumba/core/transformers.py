"""What scikit-learn asks of a step of a pipeline, without importing it: names, widths, frames."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import frames
from oklnumba.core.checks import has_shape, require, require_choice, require_list

OUTPUTS = "default", "pandas", "polars"


class Transformer:
    """Methods by which feature maps and samplers are steps of scikit-learn's pipelines.

    A subclass has ``fit``, ``transform``, decorated by ``in_frames``, and ``_names_out``. These are
    methods and no adapters, so that one object serves a learner and a pipeline; scikit-learn's own
    mixins would have ``import oklnumba`` import it.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the data seen by ``fit``.
    feature_names_in_ : ndarray of str
        Their names, where the data was a frame with names.
    """

    _requires_fit = True

    n_features_in_: int
    feature_names_in_: np.ndarray

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Look at the rows of X; return self."""
        raise NotImplementedError

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the features of the rows of X, shape (n, r)."""
        raise NotImplementedError

    def _names_out(self, columns: list[str]) -> list[str]:
        """Return the names of the features, from the names of the columns."""
        raise NotImplementedError

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
        """Return ``fit(X).transform(X)``, shape (n, r)."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the features, shape (r,).

        Parameters
        ----------
        input_features : array_like of str, optional
            Names of the columns. None: those of the frame in ``fit``, else x0, x1, ...

        Raises
        ------
        ValueError
            Before ``fit`` (scikit-learn's NotFittedError where that is loaded), or if
            ``input_features`` are not as many as the columns, or not those of the frame.
        """
        known = getattr(self, "feature_names_in_", None)
        count = getattr(self, "n_features_in_", None)
        if count is None and (input_features is None or self._requires_fit):
            raise not_fitted(f"{type(self).__name__} knows no columns yet; call fit(X) first")
        if input_features is None:
            columns = [f"x{i}" for i in range(count)] if known is None else list(known)
        else:
            columns = _as_names(input_features)
            if known is not None and columns != list(known):
                raise ValueError(
                    f"input_features is not equal to feature_names_in_, {list(known)}; leave it out"
                )
            if count is not None and len(columns) != count:
                raise ValueError(
                    f"input_features should have length equal to number of features ({count}), "
                    f"got {len(columns)}"
                )
        return np.array(self._names_out(columns), dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Have ``transform`` return arrays ("default") or frames ("pandas", "polars"); return self.

        None changes nothing. ``sklearn.set_config(transform_output=...)`` holds where this was not
        called.

        Raises
        ------
        ValueError
            For another name.
        """
        if transform is not None:
            require_choice("transform", transform, OUTPUTS)
            # scikit-learn's clone copies the attribute of this name.
            self._sklearn_output_config = {"transform": transform}
        return self

    def _output(self) -> str:
        """Return which of OUTPUTS is asked for."""
        if hasattr(self, "_sklearn_output_config"):
            return self._sklearn_output_config["transform"]
        sklearn = sys.modules.get("sklearn")
        return sklearn.get_config()["transform_output"] if sklearn else "default"

    def _note(self, X: Any, d: int) -> None:
        """Keep the width d and the names of the columns of data that was found good."""
        self.n_features_in_ = d
        names = column_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _compare(self, X: Any) -> None:
        """Raise where X has other columns than the data of ``fit``; the words are scikit-learn's.

        Anything else that is wrong with X is left to the checks that follow.
        """
        names, known = column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names != list(known):
            raise ValueError(_other_names(names, list(known)))
        count, found = getattr(self, "n_features_in_", None), width(X)
        if count is not None and found and found != count:
            raise ValueError(
                f"X has {found} features, but {type(self).__name__} is expecting {count} features "
                f"as input; pass {count} columns, or call fit to start afresh"
            )

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
    """Decorate ``transform``: X has the columns of ``fit``, the result is of the kind asked for."""

    @functools.wraps(transform)
    def wrapped(self: Transformer, X: Any) -> Any:
        self._compare(X)
        Z, kind = np.asarray(transform(self, X)), self._output()
        if kind == "default":
            return Z
        if hasattr(self, "n_features_in_"):
            names = self.get_feature_names_out().tolist()
        else:  # of a map without ``fit``
            names = self._names_out(column_names(X) or [f"x{i}" for i in range(width(X))])
        library = import_module(kind)
        if kind == "polars":
            return library.DataFrame(Z, schema=names, orient="row")
        index = X.index if isinstance(X, library.DataFrame) else None
        return library.DataFrame(Z, columns=names, index=index)

    return wrapped


def _as_names(names: Any) -> list[str]:
    """Return names of columns as a list; ValueError for what are none."""
    what = "names of columns, texts"
    found = require_list("input_features", names, what)
    texts = bool(found) and all(isinstance(name, str) for name in found)
    require(texts, "input_features", names, what)
    return found


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a frame or table; None where not all of them are text."""
    names = frames.column_names(X) if frames.is_frame(X) else None
    return names if names and all(isinstance(name, str) for name in names) else None


def width(X: Any) -> int | None:
    """Return the number of columns; None for what is not 2-D."""
    try:
        shape = X.shape if has_shape(X) else np.asarray(X).shape
    except ValueError:  # ragged lists
        return None
    return shape[1] if len(shape) == 2 else None


def not_fitted(message: str) -> ValueError:
    """Return scikit-learn's NotFittedError, a ValueError, where it is loaded; else a ValueError."""
    exceptions = sys.modules.get("sklearn.exceptions")
    return exceptions.NotFittedError(message) if exceptions else ValueError(message)


def _other_names(names: list[str], known: list[str]) -> str:
    """Return the message about names of columns that are not those of ``fit``."""
    lines = ["The feature names should match those that were passed during fit."]
    new = sorted(set(names) - set(known))
    missing = sorted(set(known) - set(names))
    for title, some in (
        ("Feature names unseen at fit time:", new),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if some:
            lines += [title, *(f"- {name}" for name in some)]
    if not new and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"
