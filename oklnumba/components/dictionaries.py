"""Streaming dictionaries: KORS, uniform sampling and approximate linear dependence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components.features import NystromFeatures
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core.checks import number, require, require_positive, require_seed, require_within
from oklnumba.core.guard import HOLD
from oklnumba.core.inputs import as_rows, cut_blocks
from oklnumba.core.params import Params
from oklnumba.core.state import Coins, NoRoom, State, aligned_zeros, padded
from oklnumba.core.threads import Locked, locked
from oklnumba.core.transformers import Transformer, in_frames, not_fitted
from oklnumba.hot.primitives.dictionary import ald_rounds, kors_rounds
from oklnumba.hot.primitives.jit import ATOMS, DONE

# What says that there was data, of a sampler; all else is made anew with the next.
_SEEN = "_seen", "_fault", "indices_", "probabilities_", "n_features_in_", "feature_names_in_"

ROWS = 8192  # points looked at in one go


class _Sampler(State, Transformer, Locked, Params):
    """A streaming dictionary: looks at points in order, keeps some, and never drops them.

    A step of scikit-learn's pipelines: ``fit`` starts afresh, ``partial_fit`` goes on.

    A subclass has ``_check_params()``, ``_start(d)`` where it has state of its own, and ``_play``.
    """

    _STATE = {"atoms": ("d", ATOMS), "counts": ("counts",)}
    _fault = ""  # after an error in the middle of a point
    _FIRST_ROOM = 32
    _REMEDY = "scale the inputs"  # of points whose numbers are beyond double precision

    @locked
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Forget what was seen and look at the rows of X; return self. See ``partial_fit``."""
        rows = as_rows(X)  # before anything is forgotten
        self._check_params()
        self.reset()
        return self._look_at(rows, X)

    @locked
    def reset(self) -> Self:
        """Go back to no data; return self."""
        with HOLD:
            for name in _SEEN:
                vars(self).pop(name, None)
        return self

    @locked
    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Look at the rows of X in order and keep some; return self.

        Parameters
        ----------
        X : array_like or scipy.sparse of shape (n, d)
        y : ignored
            So that it fits in pipelines.

        Raises
        ------
        ValueError
            If X is not valid or a hyper-parameter is outside its domain (nothing has changed then).
        FloatingPointError
            If the numbers of a point are beyond double precision; the message names it.
        MemoryError
            If there is no room to grow; the message says how many points have been looked at.
        RuntimeError
            After an error in the middle of a point, until ``reset``.
        """
        started = hasattr(self, "_seen")
        if started and self._broken:
            raise FloatingPointError(self._broken)
        if self._fault:
            raise RuntimeError(self._fault)
        self._compare_columns(X)
        rows = as_rows(X, len(self._atoms) if started else None)
        if not started:
            self._check_params()
        return self._look_at(rows, X)

    def _look_at(self, rows: Any, X: ArrayLike) -> Self:
        """Look at checked rows, which X gave."""
        if not hasattr(self, "_seen"):
            with HOLD:
                try:
                    self._start(rows.shape[1])
                    self._remember_columns(X, rows.shape[1])
                except BaseException:
                    self.reset()
                    raise
        before = self._seen
        for _, block in cut_blocks(rows, ROWS):
            with HOLD:  # interrupts come between blocks
                try:
                    self._look(block)
                except NoRoom as full:
                    done = f"{self._seen - before} of these {rows.shape[0]} points were looked at"
                    full.args = (f"{full}; {done}, and the sampler is intact",)
                    raise
                except BaseException as error:
                    if not self._broken:
                        self._fault = (
                            f"this {type(self).__name__} is no longer whole: "
                            f"{type(error).__name__} in the middle of a point; call reset() and "
                            "start again"
                        )
                    raise
        return self

    def _look(self, X: np.ndarray) -> None:
        """Look at some points; raise FloatingPointError for numbers beyond double precision."""
        played, kept = np.empty(len(X)), np.empty(len(X), dtype=np.int64)
        try:
            first, status = self._play(X, played, kept)
        except NoRoom as full:
            for name in self._COINS:
                getattr(self, f"_{name}").give_back(len(X) - full.first, len(X))
            self._record(played, kept, full.first)
            raise
        self._record(played, kept, first)
        if status != DONE:
            self._broken = (
                f"{type(self).__name__}, point {self._seen + 1}: its distance to the dictionary is "
                f"lost in double precision; {self._REMEDY}, and start with a new one"
            )
            raise FloatingPointError(self._broken)

    def _record(self, played: np.ndarray, kept: np.ndarray, first: int) -> None:
        """Note which of the next ``first`` points were kept, and with what probability."""
        new = np.flatnonzero(kept[:first])
        self.indices_ = np.concatenate([self.indices_, self._seen + new])
        self.probabilities_ = np.concatenate([self.probabilities_, played[new]])
        self._seen += first

    def _start(self, d: int) -> None:
        self._use_parts()
        self._kernel = self.kernel._code()
        self._make_state(d=d, counts=1)
        self._work = np.zeros((2, 0))
        self._seen = 0
        self._broken = ""
        self.indices_ = np.zeros(0, dtype=np.int64)
        self.probabilities_ = np.zeros(0)

    def _check_params(self) -> None:
        super()._check_params()
        check_kernel(self.kernel)

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        """Look at points; write their probabilities and whether they were kept.

        Return how many were looked at, and the status of the compiled loop.
        """
        raise NotImplementedError

    def _buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        return super()._buffers(rooms) | {"work": aligned_zeros(2, padded(rooms[ATOMS]))}

    def _data(self) -> str | None:
        return f"has seen {self._seen} points" if hasattr(self, "_seen") else None

    @locked
    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters before any data; return self.

        Raises
        ------
        ValueError
            For an unknown name, or once points have been seen.
        """
        if params and hasattr(self, "_seen"):
            raise ValueError(
                f"this {type(self).__name__} has seen {self._seen} points with its present "
                f"{', '.join(params)}; call reset() first, or make a new one"
            )
        super().set_params(**params)
        return self

    def _fitted(self) -> dict[str, Any]:
        if not hasattr(self, "_seen"):
            return {}
        return {"points seen": self._seen, "points kept": self.size}

    @property
    def size(self) -> int:
        """Points kept."""
        return int(self._counts[ATOMS]) if hasattr(self, "_seen") else 0

    @property
    @locked
    def landmarks_(self) -> np.ndarray:
        """The points kept, shape (m, d)."""
        if not hasattr(self, "_seen"):
            name = type(self).__name__
            raise not_fitted(f"{name} has seen no data; call fit(X) or partial_fit(X) first")
        return self._used("atoms").T.copy()

    def features(self, rank: int | None = None) -> NystromFeatures:
        """Return the Nystrom feature map of the points kept; ValueError if there are none."""
        if len(self.landmarks_) == 0:
            raise ValueError(
                f"{type(self).__name__} has kept no point of the {self._seen} it has seen; show it "
                "more, or let it keep more"
            )
        return NystromFeatures(self.landmarks_, self.kernel, rank=rank)

    def _names_out(self, columns: list[str]) -> list[str]:
        count = self.features().size(len(columns))
        return [f"{type(self).__name__.lower()}{j}" for j in range(count)]

    @in_frames
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the Nystrom features of the rows of X, shape (n, r)."""
        return self.features().transform(X)


class KORS(_Sampler):
    """Kernel online row sampling, a stand-alone streaming dictionary (kons Algorithm 2).

    Each point is kept with probability min(beta tau, 1) and weight 1/p, where tau is an estimate of
    its ridge leverage score over the dictionary (eq. 4). Kept points are never dropped. O(m^2) a
    point.

    Parameters
    ----------
    kernel : Kernel
    alpha : float > 0
        Regularisation of the leverage scores.
    beta : float > 0
        Oversampling; the theory asks 3 log(n / delta) / eps^2, practice uses 1.
    eps : float in (0, 1)
        Accuracy.
    seed : int
        Of the coins; the same seed gives the same dictionary, however the data is cut.

    Attributes
    ----------
    indices_ : ndarray of int, shape (m,)
        Rounds (from 0) whose points were kept.
    probabilities_ : ndarray of shape (m,)
        With which they were kept.
    landmarks_ : ndarray of shape (m, d)
        The points themselves.

    Remarks
    -------
    Errata 7 and 8: rounds 1..T, weight 1/p after success, 1/sqrt(p) on each side of the kernel
    matrix.

    In a pipeline of scikit-learn every point kept changes the features, and how many they are: show
    the sampler a stream first, ``partial_fit`` by ``partial_fit``, then train what comes after it.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> sampler = okl.KORS(okl.Gaussian(1.0), alpha=1.0, seed=0).partial_fit(X)
    >>> bool(len(sampler.indices_) < 60), sampler.transform(X).shape[0]
    (True, 300)

    Before a linear model of scikit-learn; ``partial_fit`` shows it a stream in parts.

    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> pipeline = make_pipeline(okl.KORS(okl.Gaussian(1.0)), RidgeClassifier())
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> pipeline.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.8
    True
    """

    _STATE = _Sampler._STATE | {"weights": (ATOMS,), "C": (ATOMS, ATOMS)}
    _COINS = ("coins",)
    _REMEDY = "raise alpha or scale the inputs"

    def __init__(
        self,
        kernel: Kernel,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.beta = beta
        self.eps = eps
        self.seed = seed

    def _check_params(self) -> None:
        super()._check_params()
        check_kors(self.alpha, "alpha", self.beta, self.eps, self.seed)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._coins = Coins(self.seed)

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        setting = (float(self.alpha), float(self.beta), float(self.eps), np.inf)
        coins = self._coins.take(len(X))
        return self._with_room(
            lambda first: kors_rounds(
                X, coins, first, self._kernel, setting, self._counts,
                (self._atoms, self._weights, self._C), self._work, (played, kept),
            ),
        )  # fmt: skip


class UniformSampling(_Sampler):
    """Keep each point with the same probability: what KORS is compared with (kons section 6).

    Parameters
    ----------
    kernel : Kernel
        Of ``features`` and ``transform``.
    probability : float in (0, 1]
    seed : int
        Of the coins; the same seed gives the same dictionary, however the data is cut.

    Attributes
    ----------
    indices_ : ndarray of int, shape (m,)
        Rounds (from 0) whose points were kept.
    probabilities_ : ndarray of shape (m,)
        With which they were kept.
    landmarks_ : ndarray of shape (m, d)
        The points themselves.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> okl.UniformSampling(okl.Gaussian(1.0), probability=0.1, seed=0).partial_fit(X).size
    32
    """

    _COINS = ("coins",)

    def __init__(self, kernel: Kernel, *, probability: float = 0.1, seed: int = 0):
        self.kernel = kernel
        self.probability = probability
        self.seed = seed

    def _check_params(self) -> None:
        super()._check_params()
        p = self.probability
        require(number(p) and 0 < p <= 1, "probability", p, "a number in (0, 1]")
        require_seed(self.seed)

    def _start(self, d: int) -> None:
        super()._start(d)
        self._coins = Coins(self.seed)

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        played[:] = self.probability
        kept[:] = self._coins.take(len(X)) < self.probability
        m, new = self.size, X[kept == 1]
        self._reserve({ATOMS: m + len(new)})
        self._atoms[:, m : m + len(new)] = new.T
        self._counts[ATOMS] = m + len(new)
        return len(X), DONE


class ALD(_Sampler):
    """Keep each point that is far from the span of those kept: approximate linear dependence.

    After Engel, Mannor and Meir 2004. Without randomness; the dictionary is finite on any compact
    set of inputs. O(m^2) a point.

    Parameters
    ----------
    kernel : Kernel
    threshold : float > 0
        A point is kept if the distance of k(x, .) to the span is larger.

    Attributes
    ----------
    indices_ : ndarray of int, shape (m,)
        Rounds (from 0) whose points were kept.
    probabilities_ : ndarray of shape (m,)
        Ones.
    landmarks_ : ndarray of shape (m, d)
        The points themselves.

    Remarks
    -------
    ``threshold`` is on the distance; Engel et al. have nu on its square.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> okl.ALD(okl.Gaussian(1.0), threshold=0.1).partial_fit(X).size
    15
    """

    _STATE = _Sampler._STATE | {"R": (ATOMS, ATOMS)}
    _REMEDY = "raise threshold or scale the inputs"

    def __init__(self, kernel: Kernel, *, threshold: float = 0.1):
        self.kernel = kernel
        self.threshold = threshold

    def _check_params(self) -> None:
        super()._check_params()
        require_positive("threshold", self.threshold)

    def _play(self, X: np.ndarray, played: np.ndarray, kept: np.ndarray) -> tuple[int, int]:
        played[:] = 1.0
        return self._with_room(
            lambda first: ald_rounds(
                X, first, self._kernel, float(self.threshold), self._counts,
                (self._atoms, self._R), self._work, kept,
            ),
        )  # fmt: skip


# Why mu, beta and eps are refused beside a sampler that is a probability.
UNIFORM = "uniform sampling has no use for it; leave it out, or take sampler='kors'"


def joining_rule(
    sampler: str | float, mu: float, beta: float, eps: float, seed: int
) -> tuple[float, ...]:
    """Return the rule of ``joining_probability`` for a learner's sampler; ValueError if not valid.

    sampler : "kors", "kors_listed", or the probability of uniform sampling.
    """
    check_kors(mu, "mu", beta, eps, seed)
    named = isinstance(sampler, str) and sampler in ("kors", "kors_listed")
    fixed = not isinstance(sampler, str) and number(sampler) and 0 < sampler <= 1
    require(named or fixed, "sampler", sampler, '"kors", "kors_listed", or a probability in (0, 1]')
    listed = float(sampler == "kors_listed")
    return float(mu), float(beta), float(eps), float(sampler) if fixed else 0.0, listed


def check_kors(alpha: float, name: str, beta: float, eps: float, seed: int) -> None:
    """Refuse hyper-parameters of KORS that are out of range; ``name`` is what alpha is called."""
    require_positive(name, alpha)
    require_positive("beta", beta)
    require_within("eps", eps, "(0, 1)")
    require_seed(seed)
