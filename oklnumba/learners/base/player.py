"""What ``okl.run`` plays: learners, and what is made of learners.

Threads and faults
------------------
Every public call holds the learner's lock (``locked``), so that calls from several threads come
one after the other; what they call inside does not, for the lock of the outermost is enough. A
block of rounds is played with interrupts held back (``HOLD``), and what fails in mid-round marks
the learner (``_fault``), which then refuses to go on. A ``NoRoom`` that is its own has left it
intact. A learner around others counts as one: after ``_play`` they all agree, or it is marked.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.core import inputs
from oklnumba.core.arguments import CALLS_ELSEWHERE
from oklnumba.core.guard import HOLD
from oklnumba.core.health import Health, Part, warning
from oklnumba.core.inputs import cut_blocks
from oklnumba.core.state import NoRoom
from oklnumba.core.threads import Locked, locked
from oklnumba.learners.base.saving import Saved

FIRST_ROWS = 64  # rounds of the first block of a run; each later one is as long as all before it
PLAY_ROWS = 8192  # rounds handed to the compiled loops in one go


def per_round(n: int, outputs: int) -> np.ndarray:
    """Return room for a number for each of n rounds, or for each output of each round."""
    return np.empty(n) if outputs == 1 else np.empty((n, outputs))


class Trace(NamedTuple):
    """What rounds leave behind, one entry each; the last three only for certified learners.

    A learner that plays K > 1 labels a round has (n, K) numbers of each kind but the sizes.
    """

    predictions: np.ndarray
    sizes: np.ndarray
    loss: np.ndarray | None
    comparator: np.ndarray | None
    bound: np.ndarray | None

    @classmethod
    def empty(cls, n: int, certified: bool, outputs: int = 1) -> Trace:
        """Return room for n rounds."""
        extra = [per_round(n, outputs) if certified else None for _ in range(3)]
        return cls(per_round(n, outputs), np.empty(n, dtype=np.int64), *extra)

    def rows(self, start: int, stop: int) -> Trace:
        """Return the part of some rounds (views)."""
        return Trace(*(None if a is None else a[start:stop] for a in self))


def level_of_caller() -> int:
    """Return the ``stacklevel`` with which a warning points at the first frame outside oklnumba."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("oklnumba."):
        frame, level = frame.f_back, level + 1
    return level


class Player(Saved, Locked):
    """What ``okl.run`` plays: a learner, or what is made of learners.

    A subclass has ``rounds``, ``_loss()``, ``_as_labels(y, n, signs)``, ``_begin(d, outputs)``,
    ``_play(X, y, trace)``, ``_advise(X, y)``, ``_space()``, ``_adopt(meta, arrays)``,
    and adds its state to ``_contents()``; the inner contract says what they do. Where its rounds
    leave something else behind it has ``_trace`` and ``_record``, and with a loss of its own
    ``_recorded``; ``_output_names`` says what the columns of (n, K) numbers are.
    """

    def __getattr__(self, name: str) -> Any:
        """Say what is called otherwise in other libraries; whatever is missing raises here."""
        if name in CALLS_ELSEWHERE:
            raise AttributeError(f"{type(self).__name__} has no {name}: {CALLS_ELSEWHERE[name]}")
        return object.__getattribute__(self, name)

    _width: int | None = None
    _broken: str | None = None  # after numbers beyond double precision
    _fault: str | None = None  # after an error in mid-round
    _outputs = 1  # labels a round
    _certified = False  # whether rounds come with a certificate
    _run_rows = PLAY_ROWS  # rounds between two looks at the clock

    def learn_one(self, x: ArrayLike, y: Any = None) -> Self:
        """Play one round, whose label (or labels, ``MultiOutput``) is ``y``; return self.

        Raises
        ------
        ValueError
            If x or y is not valid (nothing has changed then).
        FloatingPointError
            If the numbers of this round are beyond double precision.
        """
        return self.partial_fit(inputs.as_point(x, self._width), [y])

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Play a round for each row of X in order; return self.

        Parameters
        ----------
        X : array_like or scipy.sparse of shape (n, d)
            Sparse rows are made dense block by block, never all at once.
        y : array_like of shape (n,)
            One label for each row; of shape (n, K) where a round has K labels (``MultiOutput``).

        Raises
        ------
        ValueError
            If X or y is not valid, or a hyper-parameter (nothing has changed then).
        FloatingPointError
            If the numbers of a round are beyond double precision, or a first-order learner diverges
            (a forecast beyond 1e100); the message names the round and what to change.
        MemoryError
            If there is no room to grow; the message says how many of the rounds have been played,
            and that the learner is intact.
        RuntimeError
            After an error in mid-round, until ``reset``.

        Warns
        -----
        UserWarning
            As ``okl.run``, before the first round.

        Notes
        -----
        Ctrl-C takes effect between two blocks of rounds: ``rounds`` says how many were played.
        """
        inputs.refuse_swapped(X, y)
        with self._lock:
            X = inputs.as_rows(X, self._width)
            y = self._as_labels(y, X.shape[0])
            self._advise(X, y)
            self._play_rows(X, y)
        return self

    @locked
    def reset(self) -> Self:
        """Go back to no data; return self."""
        with HOLD:
            for name in [name for name in vars(self) if name.startswith("_")]:
                delattr(self, name)
        return self

    @locked
    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters before any data; return self.

        Raises
        ------
        ValueError
            For an unknown name, or once rounds have been played (``reset`` first).
        """
        if params and self._width is not None:
            raise ValueError(
                f"this {type(self).__name__} has played {self.rounds} rounds with its present "
                f"{', '.join(params)}; call reset() first, or make a new one"
            )
        super().set_params(**params)
        return self

    def _data(self) -> str | None:
        return None if self._width is None else f"has played {self.rounds} rounds"

    @locked
    def health(self) -> Health:
        """Return how the learner stands numerically: condition, drift, digits; nothing changes.

        Cheap enough to ask every minute: a few dozen sweeps over each factor, O(m^2) for m rows,
        and a few columns of the matrix made anew. See ``oklnumba.core.health.Health`` for what the
        numbers are, and docs/numerics.md for how good.

        Raises
        ------
        FloatingPointError
            After numerical trouble, as ``predict``.

        Warns
        -----
        UserWarning
            If fewer than six digits of the forecasts are left, or the weights are about to
            overflow; it says what to change.

        Examples
        --------
        >>> import numpy as np, oklnumba as okl
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> learner = okl.KernelRidge(okl.Gaussian(1.0), lam=1e-4)
        >>> health = learner.partial_fit(X, np.sin(3 * X[:, 0])).health()
        >>> f"{health.condition:.0e}", health.drift < 1e-14, round(health.digits)
        ('3e+06', True, 12)
        """
        parts = self._diagnose()
        found = Health.of(self.rounds, parts)
        told = warning(found, parts)
        if told:
            warnings.warn(told, UserWarning, stacklevel=level_of_caller())
        return found

    def _diagnose(self) -> list[Part]:
        """Return the parts of the learners within."""
        raise NotImplementedError

    def _fitted(self) -> dict[str, Any]:
        return {"rounds played": self.rounds, "size": self.size} if self.rounds else {}

    # ---- what a run plays and records ----

    def _play_rows(self, X: Any, y: np.ndarray, coming: int = 0) -> Trace:
        """Play checked rows, dense or sparse, block by block; return what they leave behind.

        coming : rounds that the caller is going to play, with these, where they are more.
        Interrupts come between two blocks. A NoRoom has a ``trace`` of the rounds that were played.
        """
        n = X.shape[0]
        with self._lock:
            with HOLD:
                self._begin(X.shape[1], *y.shape[1:])
                self._expect(max(n, coming))
            before, trace = self.rounds, self._trace(n)
            try:
                for rows, block in cut_blocks(X, self._run_rows):
                    with HOLD:
                        self._attempt(block, y[rows], trace.rows(rows.start, rows.stop))
            except NoRoom as full:
                if not self._fault:
                    full.told(self.rounds - before, n)
                    full.trace = trace.rows(0, self.rounds - before)
                raise
        return trace

    def _expect(self, n: int) -> None:
        """Hear that n rounds are to come, for which room may be made in one go."""

    def _attempt(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        """Play a block; an error in mid-round marks the learner."""
        try:
            self._play(X, y, trace)
        except BaseException as error:
            intact = isinstance(error, NoRoom) and error.of is self
            if not intact and not (isinstance(error, FloatingPointError) and self._broken):
                self._mark(
                    f"this {type(self).__name__} is no longer whole: {type(error).__name__} in "
                    f"the middle of a round, after round {self.rounds}; call reset() and start "
                    "again, or go on from a file that was saved before"
                )
            raise

    def _mark(self, fault: str) -> None:
        """Refuse to go on, for this reason, until ``reset``."""
        self._fault = fault

    def _refuse_fault(self) -> None:
        """Raise RuntimeError after an error in mid-round."""
        if self._fault:
            raise RuntimeError(self._fault)

    def _recorded(self, loss: str | None) -> losses.Loss:
        """Return the loss of that name, or its own."""
        return self._loss() if loss is None else losses.get(loss)

    def _trace(self, n: int) -> Trace:
        """Return room for what n rounds leave behind."""
        return Trace.empty(n, self._certified, self._outputs)

    def _record(self, y: np.ndarray, trace: Trace, loss: losses.Loss) -> dict[str, np.ndarray]:
        """Return what a run keeps of rounds, by the names of ``Run`` and of ``Certificate``."""
        part = {name: a for name, a in trace._asdict().items() if a is not None}
        part["losses"] = loss.value(trace.predictions, y)
        if np.isin(y, (-1.0, 1.0)).all():
            part["mistakes"] = y * trace.predictions <= 0.0
        return part

    def _output_names(self) -> list[Any] | None:
        """Return what the columns of (n, K) numbers are, plain JSON data; None: their places."""
        return None
