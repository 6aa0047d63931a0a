"""Streaming dictionaries of points: KORS, uniform sampling, approximate linear dependence."""

import copy
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components.features import NystromFeatures
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core.arrays import aligned_zeros, round_up_to_vector
from oklnumba.core.checks import number, require
from oklnumba.core.guard import locked
from oklnumba.core.inputs import PLAY_ROWS, as_rows, cut_blocks, scale_columns
from oklnumba.core.params import Params, field_in, field_with, positive, random_seed, required
from oklnumba.core.state import INTERRUPTED, Coins, Stateful, StateT
from oklnumba.core.transformers import Transformer, in_frames, not_fitted
from oklnumba.hot.primitives import dictionary as loops
from oklnumba.hot.primitives.jit import ATOMS, DONE


class _Sampler(Stateful[StateT, loops.Work], Transformer, Params):
    """A streaming dictionary: sees points in order and keeps some of them for good.

    It is a step of scikit-learn's pipelines: ``fit`` starts again, ``partial_fit`` goes on.
    """

    _FIRST_ROOM = 32
    _REMEDY = "scale the inputs"  # what to change after numerical trouble

    kernel: Kernel = required(check_kernel)

    @locked
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Start again with the rows of X; return self."""
        rows = as_rows(X)  # checked before the reset
        scale_columns(np.zeros((1, rows.shape[1])), self._checked_params().kernel._scales)
        self.reset()
        return self._see(rows, X)

    @locked
    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """See the rows of X in order and keep some; return self. y is ignored."""
        self._refuse_fault()
        self._compare_columns(X)
        rows = as_rows(X, self._points.shape[1] if self._started else None)
        return self._see(rows, X)

    @property
    def _started(self) -> bool:
        return hasattr(self, "_seen")

    def _play(self, X: np.ndarray, out: loops.Choices) -> tuple[int, int]:
        """See points, write whether they join; return how many it saw, and the loop's status."""
        raise NotImplementedError

    def _start(self, d: int) -> None:
        self._kernel = self._hyper.kernel._code()
        self._make_state(d=d, counts=1)
        self._coins = Coins(getattr(self._hyper, "seed", 0))
        self._seen, self._points = 0, np.zeros((0, d))
        self.indices_ = np.zeros(0, dtype=np.int64)
        self.probabilities_ = np.zeros(0)

    def _see(self, rows: Any, X: ArrayLike) -> Self:
        """See the checked rows of X."""
        self._checked_params().kernel._check_points(rows)
        if not self._started:
            self._hyper = copy.deepcopy(self._checked_params())
            scale_columns(np.zeros((1, rows.shape[1])), self._hyper.kernel._scales)
            self._start(rows.shape[1])
            self._remember_columns(X, rows.shape[1])
        self._fault = INTERRUPTED
        scales = self._hyper.kernel._scales
        for block in (some for part, some in cut_blocks(rows, PLAY_ROWS)):
            out = loops.Choices(np.empty(len(block)), np.empty(len(block), dtype=np.int64))
            seen, status = self._play(scale_columns(block, scales), out)
            new = np.flatnonzero(out.joins[:seen])
            self._points = np.concatenate([self._points, block[new]])  # atoms may be scaled
            self.indices_ = np.concatenate([self.indices_, self._seen + new])
            self.probabilities_ = np.concatenate([self.probabilities_, out.probabilities[new]])
            self._seen += seen
            if status != DONE:
                self._fault = FloatingPointError(
                    f"{type(self).__name__}, point {self._seen + 1}: its distance to the "
                    f"dictionary is lost in double precision; {self._REMEDY}, then reset() and "
                    "start again"
                )
                raise self._fault
        self._fault = None
        return self

    def _make_work(self, state: StateT, rooms: dict[int, int]) -> loops.Work:
        return loops.Work(*aligned_zeros(2, round_up_to_vector(rooms[ATOMS])))

    @property
    def size(self) -> int:
        """Number of points kept."""
        return int(self._counts[ATOMS]) if self._started else 0

    @property
    @locked
    def landmarks_(self) -> np.ndarray:
        """The points kept, shape (m, d)."""
        if not self._started:
            name = type(self).__name__
            raise not_fitted(f"{name} has seen no data; call fit(X) or partial_fit(X) first")
        return self._points.copy()

    def features(self, rank: int | None = None) -> NystromFeatures:
        """Return the Nystrom feature map of the points kept."""
        if len(self.landmarks_) == 0:
            raise ValueError(f"{type(self).__name__} has kept none of the {self._seen} points seen")
        return NystromFeatures(self.landmarks_, self.kernel, rank=rank)

    def _names_out(self, columns: list[str]) -> list[str]:
        count = self.features().size(len(columns))
        return [f"{type(self).__name__.lower()}{j}" for j in range(count)]

    @in_frames
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the Nystrom features of the rows of X, shape (n, r)."""
        return self.features().transform(X)


class KORS(_Sampler[loops.KORSState]):
    """Kernel online row sampling, a streaming dictionary without a learner (kons Algorithm 2).

    A point is kept with probability p = min(beta tau, 1) and weight 1/p, where tau estimates its
    ridge leverage score by the dictionary (eq. 4). Each point costs O(m^2).

    Parameters
    ----------
    kernel : Kernel
    alpha : float > 0
        Regularisation of the leverage scores.
    beta : float > 0
        Oversampling: 3 log(n / delta) / eps^2 in theory, 1 in practice.
    eps : float in (0, 1)
        Accuracy.
    seed : int
        The same seed gives the same dictionary, however the data is cut into calls.

    Attributes
    ----------
    indices_, probabilities_ : ndarray of shape (m,)
        Rounds, from 0, whose points were kept, and the probabilities of keeping them.
    landmarks_ : ndarray of shape (m, d)
        The points kept.

    Remarks
    -------
    Errata 7 and 8: rounds 1..T; weight 1/p for a point that is kept, that is 1/sqrt(p) on each
    side of the kernel matrix.

    Each point that is kept adds a feature. So in a pipeline of scikit-learn fit the sampler first,
    by ``partial_fit`` if the data comes in parts, then train the model after it.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> sampler = okl.KORS(okl.Gaussian(1.0), alpha=1.0, seed=0).partial_fit(X)
    >>> bool(len(sampler.indices_) < 60), sampler.transform(X).shape[0]
    (True, 300)
    """

    _layout = loops.KORSState
    _REMEDY = "raise alpha or scale the inputs"

    _: KW_ONLY
    alpha: float = positive(1.0)
    beta: float = positive(1.0)
    eps: float = field_in("(0, 1)", 0.5)
    seed: int = random_seed(0)

    def _play(self, X: np.ndarray, out: loops.Choices) -> tuple[int, int]:
        coins, p = self._coins.take(len(X)), self._hyper
        rule = loops.JoiningRule(p.alpha, p.beta, p.eps)
        return self._play_with_room(lambda first: loops.kors_rounds(
            X, coins, first, self._kernel, rule, self._state, self._work, out
        ))  # fmt: skip


class UniformSampling(_Sampler[loops.UniformState]):
    """Keep each point with the same probability: the baseline of KORS (kons section 6).

    Parameters
    ----------
    kernel : Kernel
        For ``features`` and ``transform``.
    probability : float in (0, 1]
    seed : int
        The same seed gives the same dictionary, however the data is cut into calls.

    Attributes
    ----------
    indices_, probabilities_, landmarks_
        As of KORS.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> okl.UniformSampling(okl.Gaussian(1.0), probability=0.1, seed=0).partial_fit(X).size
    32
    """

    _layout = loops.UniformState

    _: KW_ONLY
    probability: float = field_in("(0, 1]", 0.1)
    seed: int = random_seed(0)

    def _play(self, X: np.ndarray, out: loops.Choices) -> tuple[int, int]:
        out.probabilities[:] = self._hyper.probability
        out.joins[:] = self._coins.take(len(X)) < out.probabilities
        m, new = self.size, X[out.joins == 1]
        self._reserve({ATOMS: m + len(new)})
        self._state.atoms[:, m : m + len(new)] = new.T
        self._counts[ATOMS] = m + len(new)
        return len(X), DONE


class ALD(_Sampler[loops.ALDState]):
    """Keep each point far from the span of those kept: approximate linear dependence.

    Engel, Mannor and Meir 2004. It is deterministic, and the dictionary stays finite on any compact
    set of inputs. Each point costs O(m^2).

    Parameters
    ----------
    kernel : Kernel
    threshold : float > 0
        A point is kept if the distance of k(x, .) from the span is larger.

    Attributes
    ----------
    indices_, probabilities_, landmarks_
        As of KORS; the probabilities are ones.

    Remarks
    -------
    ``threshold`` bounds the distance; nu of Engel et al. bounds its square.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> okl.ALD(okl.Gaussian(1.0), threshold=0.1).partial_fit(X).size
    15
    """

    _layout = loops.ALDState
    _REMEDY = "raise threshold or scale the inputs"

    _: KW_ONLY
    threshold: float = positive(0.1)

    def _play(self, X: np.ndarray, out: loops.Choices) -> tuple[int, int]:
        out.probabilities[:] = 1.0
        threshold = self._hyper.threshold
        return self._play_with_room(lambda first: loops.ald_rounds(
            X, first, self._kernel, threshold, self._state, self._work, out
        ))  # fmt: skip


def check_sampler(
    name: str, value: Any, names: tuple[str, ...] = ("kors", "kors_listed")
) -> str | float:
    """Return the sampler of a learner: one of some names or a probability in (0, 1]."""
    named = isinstance(value, str) and value in names
    fixed = not isinstance(value, str) and number(value) and 0 < value <= 1
    listed = ", ".join(f'"{one}"' for one in names)
    require(named or fixed, name, value, f"{listed}, or a probability in (0, 1]")
    return value if named else float(value)


sampler_field = partial(field_with, check_sampler)
