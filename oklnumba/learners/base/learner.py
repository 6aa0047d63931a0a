"""The base class of all learners: forecasts, single rounds, and the contract with other rooms.

The inner contract
------------------
What a learner keeps besides its hyper-parameters lies in attributes with a leading underscore,
which ``reset`` removes. Other rooms (protocol, experts, wrappers, interop) may use these, and no
more:

- **How many.** ``_counts`` is an array of int64 whose entry ``ATOMS`` is the number of atoms; the
  other entries have names in the learner's file of ``hot``. ``size`` is for users.
- **Room for more.** ``_STATE`` gives the shape of each array of the state, ``_make_state`` makes
  them, ``_reserve`` makes room (state.py). ``_ahead(n)`` makes it for rounds to come, before any of
  several learners side by side plays these, and ``_prepare(X, y)`` whatever else they need.
- **Code of the loss.** ``_loss_code``, the integer that the compiled loops take. (Other codes have
  names of their own: ``_kernel``, ``_rule``, ``_kind``, ``_domain``.)
- **Remedy.** ``_REMEDY``, what to change after numerical trouble, for ``_check``.
- **Saved state.** ``_state()`` and ``_restore(state)``: the arrays of ``_STATE``, cut to what is
  used, and the coins named in ``_COINS`` (state.py). A file may say anything: ``_check_state()``
  refuses counts and indices that cannot be, ``_lengths(d)`` returns what else tells fixed lengths.
- **Health.** ``_matrices()``: what there is to say of the matrices that are solved with, or of the
  weights (health.py); ``_diagnose()`` returns it for a learner with data, with its remedy.
- **Ready features.** A learner with a map, ``_map_of_inputs()``, says in ``_feature_room`` how wide
  a Z, zero beyond them, ``_write(X, Z)`` takes, and ``_play_features(Z, y, trace)`` and
  ``_forecast_features(Z)``, which leave it as it is: ``Experts`` shares it.

- **Several labels a round.** A learner whose ``_several`` is True plays K labels a round on one
  state, as K learners would. After ``_begin(d, outputs=K)``, K > 1, the labels that ``_play``
  takes, its forecasts and what else there is for each label (``Trace.empty(n, certified, K)``) and
  what ``_forecast`` returns have shape (n, K) in place of (n,); sizes stay (n,). ``_outputs`` is K.
  ``_with_output()`` returns the learner with one label more, whose past is that of the last.

- **Threads.** A learner whose ``_in_threads`` is True plays beside others in ``Experts``. Where
  BLAS has a part in the rounds it is False: how many threads BLAS takes, and so its bits, is one
  setting of the process.
- **One dictionary.** Learners whose ``_leans`` is True and that differ in lam and the forecaster
  only: after ``_lean_on(lead)`` they have its dictionary, and ``_play_features`` of each plays what
  its ``_shared_rows(X, y)`` makes of rounds for which there is room.
- **One factor.** Learners whose ``_follows`` is True and that differ in the forecaster only: one
  with ridge forecasts plays, and ``_follow(lead, y, led, trace)`` makes the others' rounds of it.

And the calls: ``_check_params()``; ``_begin(d, outputs=1)`` before the first round, which checks
the hyper-parameters and then makes the state, by ``_open(d, outputs=1)``, as files and learners
around others do, which have been checked; ``_check_labels(y)``,
``_play(X, y, trace)``, ``_play_rows(X, y)``, which cuts rows, sparse ones too, into blocks for it,
``_advise(X, y)``, ``_forecast(X)``, ``_space()``, ``_ready()``, ``_contents()`` and
``_adopt(meta, arrays)``.

``okl.run`` asks for less, which is the base ``Player``: a wrapper of learners is one too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.components.features import Features
from oklnumba.components.kernels import Kernel
from oklnumba.core import inputs
from oklnumba.core.guard import HOLD
from oklnumba.core.health import Part
from oklnumba.core.inputs import cut_blocks, make_compilable
from oklnumba.core.params import anew, told
from oklnumba.core.state import NoRoom
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DIVERGED,
    DONE,
    LARGEST_FORECAST,
    NOT_FINITE,
    NOT_POSITIVE,
)
from oklnumba.learners.base.player import (
    FIRST_ROWS,
    PLAY_ROWS,
    Player,
    Trace,
    level_of_caller,
    per_round,
)
from oklnumba.learners.base.saving import SavedState
from oklnumba.learners.base.single import SingleRound

FEWEST_LABELS = 8  # fewer may be 0 and 1 by chance


class Learner(SavedState, Player):
    """An online learner: forecast, then see the label, then update.

    A subclass stores its hyper-parameters in ``__init__``, says in ``_STATE`` what it keeps, and
    has

    - ``_check_params()``: refuse hyper-parameters out of range;
    - ``_start(d)``: make the state for inputs of width d;
    - ``_play(X, y, trace)``: play rounds, writing forecasts before labels are read;
    - ``_forecast(X)``: forecasts of single rounds against the current state, which stays as it is.

    Any thread may call any method; calls on one learner come one after the other.
    """

    _REMEDY = "scale the inputs and labels"

    _played = 0
    _single: SingleRound | None = None  # buffers of single rounds
    _several = False  # whether it can play several labels a round
    _in_threads = False  # whether rounds are compiled throughout, without BLAS, so that threads pay
    _follows = False  # whether it can take over the rounds of one with another forecaster
    _leans = False  # whether it can have the dictionary of one with another lam
    _prepares = False  # whether ``_prepare`` does anything
    _feature_room = 0  # columns of ready features that the learner takes; 0: it has no map

    # ---- the protocol ----

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return self._played

    @property
    def size(self) -> int:
        """Atoms in the dictionary, or number of features; 0 before any data."""
        return int(self._counts[ATOMS]) if self._width is not None else 0

    def predict_one(self, x: ArrayLike) -> float:
        """Return the forecast if ``x`` came next; nothing changes. 0.0 before any data.

        Parameters
        ----------
        x : array_like of shape (d,)

        Raises
        ------
        ValueError
            If x is not one finite numeric point of the width seen so far.
        FloatingPointError
            If the numbers of the forecast are beyond double precision (nothing has changed then).
        """
        with self._lock:
            single = self._takes(x)
            if single is not None:
                X = single.X
            else:
                X = inputs.as_point(x, self._width)
                if not self._ready():
                    return 0.0
                self._keep_single()
            forecast = self._forecast(X)[0]
            if self._outputs > 1:
                self._refuse_not_finite(forecast[None])
                return forecast
            forecast = float(forecast)
            if not math.isfinite(forecast):
                self._refuse_not_finite(np.array([forecast]))
            return forecast

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X, each on its own against the current state.

        Parameters
        ----------
        X : array_like or scipy.sparse of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If X is not numeric, finite, 2-D, non-empty and of the width seen so far.
        FloatingPointError
            If the numbers of a forecast are beyond double precision (nothing has changed then).
        """
        with self._lock:
            X = inputs.as_rows(X, self._width)
            out = per_round(X.shape[0], self._outputs)
            out[:] = 0.0
            if self._ready():
                for rows, block in cut_blocks(X, PLAY_ROWS):
                    out[rows] = self._forecast(block)
                self._refuse_not_finite(out)
        return out

    def _refuse_not_finite(self, forecasts: np.ndarray) -> None:
        """Raise FloatingPointError that names the first row with a forecast that is none."""
        finite = np.isfinite(forecasts)
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(finite), -1).all(axis=1)))
            raise FloatingPointError(
                f"the forecast of this {type(self).__name__} for row {row} of the inputs is beyond "
                f"double precision, for such numbers as the row has; leave it out, or "
                f"{self._REMEDY}"
            )

    def learn_one(self, x: ArrayLike, y: float | None = None) -> Self:
        """Play one round: forecast ``x`` (not returned), then learn its label ``y``; return self.

        Raises
        ------
        ValueError
            If x or y is not valid (nothing has changed then).
        FloatingPointError
            If the numbers of this round are beyond double precision.
        MemoryError
            If there is no room to grow (the learner is as it was then).
        RuntimeError
            After an error in mid-round, until ``reset``.
        """
        with self._lock, HOLD:
            single = self._takes(x)
            if single is not None and single.takes_label(y):
                X, label = single.X, single.y
            else:
                X = inputs.as_point(x, self._width)
                label = inputs.as_label(y, self._loss().classes)
            self._check_labels(label)
            if single is None:
                self._begin(X.shape[1])
                single = self._keep_single()
            try:
                self._attempt(X, label, single.trace)
            except NoRoom as full:
                if not self._fault:
                    full.told(0, 1)
                raise
        return self

    # ---- what subclasses write ----

    def _start(self, d: int) -> None:
        raise NotImplementedError

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        raise NotImplementedError

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    # ---- what they share ----

    def _prepare(self, X: np.ndarray, y: np.ndarray) -> None:
        """Make what these rounds need beside room, before they are played, or leave all as it was.

        They may not be played after all, or other ones. Raises NoRoom.
        """

    def _takes(self, x: Any) -> SingleRound | None:
        """Return the buffers of single rounds, with x in them, or None.

        None before they are kept, after trouble, and for what is no plain point.
        """
        single = self._single
        if single is None or self._broken or self._fault or not single.takes_point(x):
            return None
        return single

    def _keep_single(self) -> SingleRound | None:
        """Return the buffers of single rounds, made with the first; None for several labels."""
        if self._single is None and self._outputs == 1:
            self._single = SingleRound(self._width, self._loss().classes, self._trace(1))
        return self._single

    def _loop(self, loop: Callable, X: np.ndarray) -> Callable:
        """Return a compiled loop, for single rounds as what they enter it by."""
        single = self._single
        return loop if single is None or X is not single.X else single.entered(loop)

    def _loss(self) -> losses.Loss:
        return losses.get(getattr(self, "loss", "squared"))

    @cached_property
    def _loss_code(self) -> int:  # looked up in the first round, gone with the state
        return self._loss().code

    def _space(self) -> str | None:
        """Return the space of the certificate now; None for learners without one."""
        return None

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        """Return checked labels of n rounds, -1 and +1 only if ``signs`` or the loss says so."""
        y = inputs.as_labels(y, n, signs or self._loss().classes)
        self._check_labels(y)
        return y

    def _check_labels(self, y: np.ndarray) -> None:
        """Raise ValueError for labels that a learner cannot take though its loss can."""

    def _check_params(self) -> None:
        super()._check_params()
        self._loss()

    def _begin(self, d: int, outputs: int = 1) -> None:
        """Make the state at the first round; refuse to go on after numerical trouble."""
        self._refuse_trouble()
        if self._width is not None:
            if d != self._width:  # another thread was first
                raise ValueError(f"X has {d} columns, but this learner has seen {self._width}")
            inputs.require_outputs(outputs, self._outputs)
            return
        self._check_params()
        self._open(d, outputs)

    def _open(self, d: int, outputs: int = 1) -> None:
        """Make the state, of hyper-parameters that have been checked."""
        self._outputs = outputs
        self._use_parts()
        try:
            self._start(d)
        except BaseException:
            self.reset()
            raise
        self._width = d

    def _ready(self) -> bool:
        """Say whether there is a state to forecast from; refuse after numerical trouble."""
        self._refuse_trouble()
        return self._width is not None

    def _refuse_trouble(self) -> None:
        if self._broken:
            raise FloatingPointError(self._broken)
        if self._fault:
            raise RuntimeError(self._fault)

    def _check(self, status: int, played: int) -> None:
        """Turn a status of the compiled loops into an error that names the round."""
        if status == DONE:
            return
        what = {
            NOT_POSITIVE: "a matrix lost its positive definiteness",
            NOT_FINITE: "the forecast is not finite",
            DIVERGED: f"the run diverges, its forecast is beyond {LARGEST_FORECAST:g}",
        }[status]
        eta = getattr(self, "eta", None) if status == DIVERGED else None
        what += f" with eta={eta!r}" if eta is not None else ""
        self._broken = (
            f"{type(self).__name__}, round {self._played + played + 1}: {what}; {self._REMEDY}, "
            "then reset() and start again"
        )
        raise FloatingPointError(self._broken)

    def _advise(self, X: np.ndarray, y: np.ndarray) -> None:
        """Warn, before the first round, of inputs and labels that do not suit."""
        if self._played:
            return
        advice = self._advice(make_compilable(X[:FIRST_ROWS]))
        if advice:
            warnings.warn(advice, UserWarning, stacklevel=level_of_caller())
        zeros = y == 0.0
        if len(y) >= FEWEST_LABELS and (zeros | (y == 1.0)).all() and len(np.unique(zeros)) == 2:
            warnings.warn(
                "the labels are 0 and 1, which this loss takes for numbers, a regression, so that "
                "Run.mistake_rate is None: for two classes make them -1 and +1, y = 2 * y - 1, or "
                "take okl.interop.OnlineClassifier, whose classes are any",
                UserWarning,
                stacklevel=level_of_caller(),
            )

    def _advice(self, X: np.ndarray) -> str | None:
        """Return what to change where the first inputs do not suit the hyper-parameters."""
        parts = getattr(self, "features", None), getattr(self, "kernel", None)
        told = (part.advice(X) for part in parts if isinstance(part, Features | Kernel))
        return next(filter(None, told), None)

    def _matrices(self) -> list[Part]:
        """Return what there is to say of its matrices, or weights; called after some data only."""
        return []

    def _diagnose(self) -> list[Part]:
        if not self._ready() or not self._played:
            return []
        return [part._replace(remedy=part.remedy or self._REMEDY) for part in self._matrices()]

    def _play_rounds(self, n: int, rounds: Callable[[int], tuple[int, int]]) -> None:
        """Play n rounds by calls of ``rounds(first)``, making room wherever it asks for it."""
        try:
            first, status = self._with_room(rounds)
        except NoRoom as full:
            self._played_only(full.first, n)
            raise
        if status != DONE:
            self._check(status, first)
        self._played += n

    def _played_only(self, first: int, n: int) -> None:
        """Count the first of n rounds, after which there was no room."""
        self._played += first
        for name in self._COINS:
            getattr(self, f"_{name}").give_back(n - first, n)


def check_learner(learner: Any) -> Learner:
    """Return a learner, or raise ValueError for what is not one."""
    if not isinstance(learner, Learner):
        raise ValueError(
            f"learner must be an oklnumba learner such as okl.FOGD(), but is {told(learner)}"
        )
    return learner


def fresh(learner: Any) -> Learner:
    """Return a learner of the same hyper-parameters without data."""
    return anew(check_learner(learner))
