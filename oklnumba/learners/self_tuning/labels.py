"""The last labels: inputs of members with lags, and the measure of what is an outlier."""

from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from oklnumba.components.scaling import measure_range, take_medians
from oklnumba.core.guard import run_together
from oklnumba.core.state import Stateful
from oklnumba.hot.primitives.jit import UNBOUNDED, Array, Integers, enter
from oklnumba.hot.tuned.layers import LayerResults, Recalled
from oklnumba.hot.tuned.scaling import HIGH, LEAST, LOW, MEDIAN, MOST, remember_labels, write_lags
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.settings import LONG_WINDOW, MAX_LABEL, SHORT_WINDOW

WINDOWS = 128  # of labels: as many as one thread measures at a time; Python's lock costs more below
REMEMBERED = settings.BLOCK_ROWS + LONG_WINDOW  # labels: of a block, and as many late ones
ALL_REMEMBERED = np.full(settings.BLOCK_ROWS, REMEMBERED)


class Trouble(Exception):
    """A compiled loop ended with this status, not DONE, after so many rounds."""


class Known(NamedTuple):
    """The labels that were known when each of n rounds was forecast; missing ones count as 0."""

    last: np.ndarray  # (n, K)
    differences: np.ndarray  # (n, K, LAGS - 1): how those before differ from it
    there: np.ndarray  # (n, K): 1 if there was any, else 0

    def change_to(self, Y: np.ndarray) -> np.ndarray:
        """Return labels, (n, K), less the last ones; 0 where there was none: no jump is learned."""
        return (Y - self.last) * self.there


def look_back(labels: np.ndarray, counts: np.ndarray) -> Known:
    """Return what is known of labels, (m, K), where ``counts``, (n,), of them have come."""
    shape = len(counts), labels.shape[1]
    known = Known(np.empty(shape), np.empty((*shape, settings.LAGS - 1)), np.empty(shape))
    enter(write_lags)(labels[:0], labels, counts, 0, *known)
    return known


class Views(NamedTuple):
    """What members see of inputs, on the scales of an ensemble."""

    scores: np.ndarray  # (n, d), normal scores of those standardised
    with_lags: np.ndarray  # (n, > d), standardised, and the last labels
    base: np.ndarray  # (n, K), the last label, to which members with lags add; from the offsets


NO_LABELS = np.empty((0, 0))  # of rounds that are only forecast
NOT_ASKED = np.empty(0, dtype=np.int64)
NOT_LATE = Recalled(np.empty((0, 0, 0)), NOT_ASKED)


class Rounds(NamedTuple):
    """Rounds as members play them."""

    X: np.ndarray  # (n, d)
    Y: np.ndarray  # (n, K), labels to learn: once judged, the median in place of outliers; or empty
    cut: np.ndarray  # (n, K), labels as they came, cut to [LEAST, MOST], for members with lags
    known: Known
    recorded: np.ndarray | None = None  # (n, E, K), what trees and experts forecast at the time
    then: Recalled = NOT_LATE  # what stages and members forecast when late rows were asked
    trusts_stages: bool = True  # else layers do not learn what they forecast in these rounds
    joins: bool = False  # whether inputs may join dictionaries
    was_forecast: bool = False  # whether it is one round, forecast just now: its z is there
    learned: slice | np.ndarray = slice(None)  # which have a label; Y and cut of the others are NaN


class Past(NamedTuple):
    """All rounds so far."""

    X: np.ndarray  # (t, d)
    Y: np.ndarray  # (t, K), as in Rounds
    cut: np.ndarray  # (t, K)
    known_counts: np.ndarray  # (t,), how many labels were known when each was forecast
    recorded: np.ndarray  # (t, E, K), as in Rounds

    def turns(self, first: int, earliest: int = 0, longest: float = np.inf) -> np.ndarray:
        """Return after how many rounds a replay forecasts each row from ``first`` on.

        As many as were known, or fewer by a quarter of the lead, so that several rows have one
        turn; but at least ``earliest``, and not more than ``longest`` rounds before its own. Its
        own if it was not late.
        """
        rounds, known = np.arange(first, len(self.X)), self.known_counts[first:]
        step = 1 << np.log2(np.maximum((rounds - known) // 4, 1)).astype(np.int64)
        turns = np.maximum(known // step * step, np.maximum(earliest, rounds - longest))
        return np.minimum(turns, rounds).astype(np.int64)

    def order(self, first: int, stop: int, turns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what a replay of rounds ``first`` to ``stop`` plays in order: times, and rows.

        A row is learned at the time that is its own number. If its turn is earlier, it is asked
        then, before the row that is learned there. turns : of the rows from ``first`` on.
        """
        own, rows = np.arange(first, stop), np.arange(first, len(self.X))
        asked = (turns < rows) & (turns >= first) & (turns < stop)
        times = np.concatenate([turns[asked], own])
        order = times.argsort(kind="stable")
        return times[order], np.concatenate([rows[asked], own])[order]

    def rounds(self, rows: slice | np.ndarray) -> Rounds:
        """Return some of them."""
        known = look_back(self.cut, self.known_counts[rows])
        return Rounds(self.X[rows], self.Y[rows], self.cut[rows], known, self.recorded[rows])


class LabelsState(NamedTuple):
    """What Labels remembers."""

    recent: Annotated[Array, "window", "outputs", UNBOUNDED]  # NaN before there were any
    cut: Annotated[Array, "remembered", "outputs", UNBOUNDED]  # the same, cut to [LEAST, MOST]
    limits: Annotated[Array, "limits", "outputs"]
    replaced: Annotated[Integers, "outputs"]  # how many outliers there were
    price: Annotated[Array, "outputs", UNBOUNDED]  # what they cost


class Labels(Stateful[LabelsState, None]):
    """The last labels, and the limits of usual ones, measured every few rounds.

    Outliers are far from the last LONG_WINDOW labels and from the last SHORT_WINDOW ones. So labels
    that move elsewhere, or to another scale, are outliers for at most SHORT_WINDOW rounds.

    are_judged : whether outliers are looked for; else only labels beyond MAX_LABEL are any.
    """

    _layout = LabelsState
    _known: Known  # what was known in the last forecasts
    _are_usual: bool  # whether all labels remembered last are within LOW and HIGH

    def __init__(self, outputs: int, are_judged: bool):
        self._are_judged = are_judged
        self._make_state(outputs=outputs, window=LONG_WINDOW, remembered=REMEMBERED, limits=6)
        self._state.recent[:] = self._state.cut[:] = np.nan
        limits = np.array([-MAX_LABEL, -MAX_LABEL, 0.0, MAX_LABEL, MAX_LABEL, MAX_LABEL])
        self._state.limits[:] = limits[:, None]

    def know_all(self, n: int) -> Known:
        """Return what is known in n single forecasts now."""
        self._known = look_back(self._state.cut, ALL_REMEMBERED[:n])
        return self._known

    # ---- what is usual ----

    def measure(self, Y: np.ndarray, before: np.ndarray, played: int) -> np.ndarray:
        """Return the limits in n rows, (6, n, K), or (6, 1, K), the same for all.

        They are measured on labels before each row. Y : (m, K), those to learn after so many
        rounds; before : (n,), how many of them come before each row.
        """
        m, every = len(Y), settings.MEASURE_LABELS_EVERY
        first = max(SHORT_WINDOW - played, -played % every)  # round of this block that measures
        if not self._are_judged or first >= m:
            return self._state.limits[:, None]
        labels = np.concatenate([self._state.recent, Y])
        # Of the LONG_WINDOW labels before round first, first + every, ... of this block.
        starts, (row, one) = np.arange(first, m, every), labels.strides
        windows = np.ndarray(  # views, as of sliding_window_view, which takes 20 us
            (len(starts), Y.shape[1], LONG_WINDOW), buffer=labels, offset=first * row,
            strides=(every * row, one, row),
        )  # fmt: skip
        size = max(1, WINDOWS // Y.shape[1])
        some = [windows[i : i + size] for i in range(0, len(windows), size)]
        measured = run_together([partial(measure_limits, one) for one in some], m)
        # One after another.
        in_force = np.concatenate([self._state.limits[:, None], *measured], axis=1)
        self._state.limits[:] = in_force[:, -1]
        places = np.searchsorted(starts, before, side="right")
        return in_force.take(places, axis=1)

    def remember(
        self, Y: np.ndarray, limits: np.ndarray, known_counts: np.ndarray
    ) -> tuple[np.ndarray, Known]:
        """Append the labels learned to the last ones.

        Returns all, cut to [LEAST, MOST], (n, K), and what each row knew. known_counts : (n,), of
        how many of these labels, negative of late rows; empty: it is as in the last forecast.
        """
        state, cut, new = self._state, np.empty_like(Y), np.empty_like(Y)
        if len(known_counts):
            differences = np.empty((*Y.shape, settings.LAGS - 1))
            self._known = Known(np.empty_like(Y), differences, np.empty_like(Y))
        written = state.recent, state.cut, cut, new, *self._known
        self._are_usual = enter(remember_labels)(Y, limits, known_counts, *written)
        return cut, self._known

    def judge(
        self, limits: np.ndarray, Y: np.ndarray, forecasts: np.ndarray, offsets: Any = 0.0
    ) -> np.ndarray:
        """Return what to learn of the labels that were just remembered.

        forecasts : (E, n, K), of members with lags.
        """
        if self._are_usual:  # mostly
            return Y
        reach = settings.FORETOLD * np.abs(Y - limits[MEDIAN])
        foretold = (np.abs(forecasts + offsets - Y) <= reach).any(axis=0)
        low, high = np.where(foretold, limits[[LEAST, MOST]], limits[[LOW, HIGH]])
        learned = keep_within(Y, low, limits[MEDIAN], high)
        self._state.replaced[:] += np.count_nonzero((learned != Y) & (Y == Y), axis=0)
        return learned

    def judge_first(self, played: int) -> tuple[np.ndarray, np.ndarray]:
        """Judge the labels from before there were limits; return them to learn, and cut."""
        Y, limits = self._state.recent[-played:][:SHORT_WINDOW], self._state.limits
        cut = Y.clip(limits[LEAST], limits[MOST])
        self._state.cut[-played:][:SHORT_WINDOW] = cut
        return keep_within(Y, limits[LOW], limits[MEDIAN], limits[HIGH]), cut

    def add_price(self, Y: np.ndarray, learned: np.ndarray, out: LayerResults) -> None:
        """Add what outliers cost so far to certificates, which are of the labels that came.

        That is the losses of these less those of the labels learned.
        """
        price = self._state.price
        if learned is not Y:  # there are outliers
            with np.errstate(over="ignore"):  # squares of labels beyond 1e154
                more = (Y - out.predictions) ** 2 - (learned - out.predictions) ** 2
            more[Y != Y] = 0.0
            more[0] += price
            price = np.add.accumulate(more)
            self._state.price[:] = price[-1]
        if any(price.ravel().tolist()):  # faster than NumPy in single rounds
            for so_far in (out.loss, out.bound, out.guaranteed):
                so_far += price


def check_sizes(y: np.ndarray, recent: np.ndarray | None) -> None:
    """Refuse labels, (n,) or (n, K), whose fourth powers leave double precision.

    What counts is the median size of the last SHORT_WINDOW labels but zeros.
    """
    least, most = settings.LABEL_SIZES
    if not any(size > most or 0.0 < size < least for size in map(abs, y.ravel().tolist())):
        return
    before = np.full((SHORT_WINDOW - 1, *y.shape[1:]), np.nan)
    if recent is not None:
        before = recent[1 - SHORT_WINDOW :].reshape(before.shape)
    sizes = np.concatenate([np.abs(before), np.abs(y)])
    sizes[sizes == 0.0] = np.nan
    windows = sliding_window_view(sizes, SHORT_WINDOW, axis=0)
    size, enough = take_medians(windows), (windows > 0.0).sum(axis=-1) >= settings.FEWEST_SIZES
    odd = enough & ((size < least) | (size > most))
    if odd.any():
        row, first = int(odd.nonzero()[0][0]), float(size[odd][0])
        factor = 10.0 ** -round(np.log10(max(first, 1e-300)))  # of tiny ones a finite one
        raise ValueError(
            f"y has labels of size {first:.0e} at row {row}, but SelfTuning takes sizes from "
            f"{least:g} to {most:g}: scale the labels, y * {factor:g}"
        )


def measure_limits(windows: np.ndarray) -> np.ndarray:
    """Return the limits after windows of labels, (m, K, LONG_WINDOW), as (6, m, K)."""
    middle, reach = measure_range(windows, settings.LABEL_OUTLIER)
    last_middle, last_reach = measure_range(windows[..., -SHORT_WINDOW:], settings.LABEL_OUTLIER)
    low = np.minimum(middle - reach, last_middle - last_reach)
    high = np.maximum(middle + reach, last_middle + last_reach)
    most = settings.MOST_REACHES * np.maximum(reach, last_reach)
    least, most = np.minimum(low, last_middle - most), np.maximum(high, last_middle + most)
    return np.stack([least, low, last_middle, high, most, reach]).clip(-MAX_LABEL, MAX_LABEL)


def keep_within(Y: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the labels, the middle in place of those that are not between low and high."""
    return np.where((Y < low) | (Y > high), middle, Y)
