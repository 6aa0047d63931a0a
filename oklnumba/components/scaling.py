"""Standardising inputs by the rows seen so far."""

from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core.guard import locked
from oklnumba.core.inputs import as_inputs
from oklnumba.core.params import Params, positive
from oklnumba.core.state import INTERRUPTED, Stateful
from oklnumba.core.transformers import Transformer, in_frames, not_fitted
from oklnumba.hot.primitives.jit import UNBOUNDED, Array, Integers, enter
from oklnumba.hot.primitives.linalg import write_ranges
from oklnumba.hot.primitives.scaling import ROUNDING, standardise_rows, standardise_stream

LARGEST = 1e140  # squares of larger inputs overflow
WINDOW = 256  # rows whose medians say what an outlier is
FIRST_MEDIANS, MEDIANS_EVERY = (16, 32, 64), 128  # rows after which medians are measured
OUTLIER = 100.0  # median deviations from the median beyond which an input is an outlier


def measure_range(A: np.ndarray, far: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the median of each row of A, NaN left out, and the distance where outliers begin.

    The distance is ``far`` times the median deviation of the values that differ from the median:
    most values may be equal, as in amounts of rain or one-hot columns. Infinite if all are equal.
    """
    rows = np.array(A, order="C").reshape(-1, A.shape[-1])
    rows.sort(axis=-1)
    middle, reach = np.empty((2, *A.shape[:-1]))
    enter(write_ranges)(rows, far, ROUNDING, middle.reshape(-1), reach.reshape(-1))
    return middle, reach


def take_medians(A: np.ndarray) -> np.ndarray:
    """Return the median of each row of A, NaN left out."""
    return measure_range(A, 1.0)[0]


def replace_outliers(X: np.ndarray, middle: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return X with the median of its column in place of each number that is further from it."""
    return np.where(np.abs(X - middle) > reach, middle, X)


def moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the scale of the columns of X, as defined by Standardizer, (d,) each."""
    shifted = X - X[0]
    middle = shifted.mean(axis=0)
    mean = X[0] + middle
    return mean, _scale(np.square(shifted - middle).mean(axis=0), mean)


def _scale(variance: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the root of the variance, 1 where it is only rounding."""
    scale = np.sqrt(variance)
    return np.where(scale <= ROUNDING * np.abs(mean), 1.0, scale)


class Scaling(NamedTuple):
    """Moments of the rows so far, as in hot/primitives/scaling.py, and what tells outliers."""

    origin: Annotated[Array, "d"]
    mean: Annotated[Array, "d"]
    squares: Annotated[Array, "d"]
    counts: Annotated[Integers, "counts"]  # one entry: rows
    recent: Annotated[Array, "window", "d", UNBOUNDED]  # row t is t % WINDOW; NaN if there was none
    middle: Annotated[Array, "d"]
    reach: Annotated[Array, "d", UNBOUNDED]


class Standardizer(Stateful[Scaling, None], Transformer, Params):
    """Columns with mean 0 and scale 1, by the running mean and deviation without outliers.

    ``stream(X)`` is for online protocols: it transforms each row by the rows before it, then learns
    the row. The first row becomes zeros. A row costs O(d).

    As a step of scikit-learn's pipelines it learns all rows in ``fit``, as ``StandardScaler`` does,
    so a run on its output has looked ahead. ``okl.Standardized(learner)`` scales within the run.

    Parameters
    ----------
    clip : float > 0, optional
        Clip results to [-clip, clip]. None: do not.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (d,)
        Of the rows so far, without outliers. The scale is the root mean squared deviation (divided
        by n), or 1 if a column is constant up to rounding, 8 * 2^-52 |mean|.
    n_seen_ : int
        Number of rows so far.
    n_features_in_, feature_names_in_
        Width of X, and names of its columns if it had some.

    Remarks
    -------
    Welford's recursion (Welford 1962) row by row, so the bits do not depend on how the rows are cut
    into calls. It works on differences from the first row, so columns far from 0 lose no digits.

    A number further than 100 median deviations from the median of its column counts as the median.
    Median and deviation are of the last 256 rows, measured after 16, 32, 64, 128 and 256 rows and
    then every 128; the first 256 rows are judged again each time. Numbers equal to the median do
    not count in the deviation, as in some columns most are.

    Examples
    --------
    >>> scaler = okl.Standardizer()
    >>> scaler.stream([[7.0], [9.0], [10.0]]).ravel()
    array([0., 2., 2.])
    >>> scaler.partial_fit([[6.0]]).mean_, scaler.n_seen_
    (array([8.]), 4)
    """

    _layout = Scaling

    clip: float | None = positive(5.0, optional=True)

    @property
    def n_seen_(self) -> int:
        """Number of rows so far."""
        return int(self._counts[0])

    @property
    @locked
    def mean_(self) -> np.ndarray:
        """Mean of the rows so far, shape (d,)."""
        self._refuse_unseen()
        return self._state.origin + self._state.mean

    @property
    @locked
    def scale_(self) -> np.ndarray:
        """Root mean squared deviation of the rows so far, 1 if constant, shape (d,)."""
        self._refuse_unseen()
        return _scale(self._state.squares / self.n_seen_, self._state.origin + self._state.mean)

    @locked
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Start again with the rows of X; return self."""
        rows = self._check_inputs(X)  # checked before the reset
        self.reset()
        self._learn(rows, X)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the rows of X, whose numbers are at most 1e140; return self. y is ignored."""
        self.stream(X)
        return self

    @locked
    @in_frames
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the rows of X standardised by the rows learnt so far, shape (n, d)."""
        self._refuse_unseen()
        return self._transform(self._check_inputs(X, self._width()))

    @locked
    def stream(self, X: ArrayLike) -> np.ndarray:
        """Return each row of X standardised by the rows before it, (n, d); learn the rows."""
        self._compare_columns(X)
        return self._learn(self._check_inputs(X, self._width()), X)

    def _names_out(self, columns: list[str]) -> list[str]:
        return columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # a centred row has no zeros
        return tags

    def _width(self) -> int | None:
        return len(self._state.mean) if hasattr(self, "_state") else None

    def _begin(self, d: int) -> None:
        """Make the state for rows of width d."""
        self._clip_at = self._checked_params().clip or np.inf
        self._make_state(d=d, counts=1, window=WINDOW)
        self._state.recent[:], self._state.reach[:] = np.nan, np.inf

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        recent = self._state.recent[: self.n_seen_]
        recent[np.isnan(recent)] = 0.0  # of columns that are new

    def _learn(self, rows: np.ndarray, X: Any) -> np.ndarray:
        """Stream the checked rows of X, perhaps the first."""
        if not hasattr(self, "_state"):
            self._begin(rows.shape[1])
            self._remember_columns(X, rows.shape[1])
        return self._stream(rows)

    def _stream(self, X: np.ndarray) -> np.ndarray:
        """Stream checked inputs, C-contiguous."""
        self._refuse_fault()
        out, state = np.empty(X.shape), self._state
        self._fault = INTERRUPTED
        start = 0
        while start < len(X):  # to the end, or to the next time at which medians are measured
            count = self.n_seen_
            later = (count // MEDIANS_EVERY + 1) * MEDIANS_EVERY
            due = next((t for t in FIRST_MEDIANS if t > count), later)
            piece = slice(start, min(start + due - count, len(X)))
            rows, stop = X[piece], count + piece.stop - start
            state.recent[np.arange(count, stop) % WINDOW] = rows
            learned = replace_outliers(rows, state.middle, state.reach)
            standardise_stream(rows, learned, *self._moments(), count, self._clip_at, out[piece])
            self._counts[0] = stop
            if stop == due:
                self._measure_medians()
            start = piece.stop
        self._fault = None
        return out

    def _measure_medians(self) -> None:
        """Measure what an outlier is, and judge all rows again while the window holds them."""
        state = self._state
        state.middle[:], state.reach[:] = measure_range(state.recent.T, OUTLIER)
        if self.n_seen_ <= WINDOW:  # without outliers the moments keep their bits
            rows = state.recent[: self.n_seen_]
            learned = replace_outliers(rows, state.middle, state.reach)
            state.mean[:] = state.squares[:] = 0.0
            standardise_stream(rows, learned, *self._moments(), 0, np.inf, np.empty(rows.shape))

    def _transform(self, X: np.ndarray) -> np.ndarray:
        """Transform checked inputs, C-contiguous; to zeros before any data."""
        out = np.zeros(X.shape)
        if self.n_seen_:
            standardise_rows(X, *self._moments(), self.n_seen_, self._clip_at, out)
        return out

    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._state[:3]

    def _check_inputs(self, X: Any, width: int | None = None) -> np.ndarray:
        """Return X checked and C-contiguous."""
        X = as_inputs(X, width)
        beyond = np.abs(X) > LARGEST
        if beyond.any():
            row, column = np.argwhere(beyond)[0]
            raise ValueError(
                f"X has {float(X[row, column])!r} at row {row}, column {column}; squares overflow "
                f"beyond {LARGEST:g}, so scale this column first"
            )
        return np.array(X, order="C")

    def _refuse_unseen(self) -> None:
        if not self.n_seen_:
            raise not_fitted("Standardizer has seen no data; call fit(X) or partial_fit(X) first")
