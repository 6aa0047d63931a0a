"""What works around any learner: several classes, and one fixed function out of a whole run."""

from __future__ import annotations

import copy
import os
import time
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba import checks
from oklnumba.checks import require_count
from oklnumba.learners.learner import FIRST_ROWS, Learner, compilable, write_npz
from oklnumba.params import Params, to_spec


def fresh(learner: Any) -> Learner:
    """Return a learner of the same hyper-parameters without data."""
    if not isinstance(learner, Learner):
        raise ValueError(f"learner must be an oklnumba learner, but is {learner!r}")
    return type(learner)(**copy.deepcopy(learner.get_params(deep=False)))


class MulticlassRun(NamedTuple):
    """What a run over several classes leaves behind.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
        The class forecast in each round.
    mistakes : ndarray of bool, shape (n,)
    scores : ndarray of shape (n, K)
        The forecasts of the scorers, one column a class.
    sizes : ndarray of int, shape (n,)
        Sizes of all scorers together.
    seconds : float
        Time in the scorers.
    """

    predictions: np.ndarray
    mistakes: np.ndarray
    scores: np.ndarray
    sizes: np.ndarray
    seconds: float

    @property
    def mistake_rate(self) -> float:
        """Share of rounds with a mistake."""
        return float(self.mistakes.mean())


class OneVsRest(Params):
    """Several classes by one scorer each, whatever the learner (Rifkin and Klautau 2004).

    The scorer of class c learns +1 for c and -1 for all other classes; the forecast is the class
    with the largest score, the first one on ties (so the first class before any data). Costs K
    times a binary learner.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are those of every scorer; it is not played itself.
    classes : sequence of at least two different labels
        Numbers or texts; all that the stream may have.

    Attributes
    ----------
    scorers_ : list of Learner
        In the order of ``classes``.

    Remarks
    -------
    The scorers do not see each other, so all that holds for a learner (any cut of the stream gives
    the same run, no look at later labels, save and load) holds here.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1500, 2))
    >>> y = np.array(["left", "middle", "right"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    >>> learner = okl.OneVsRest(okl.FOGD(eta=0.5), classes=["left", "middle", "right"])
    >>> bool(learner.run(X, y).mistake_rate < 0.12), str(learner.predict_one([0.9, 0.0]))
    (True, 'right')
    """

    def __init__(self, learner: Learner, classes: Any):
        self.learner = learner
        self.classes = classes

    def _begin(self) -> None:
        if hasattr(self, "scorers_"):
            return
        classes = np.asarray(self.classes)
        proper = classes.ndim == 1 and len(classes) >= 2 and classes.dtype.kind in "iufUb"
        if not proper or len(np.unique(classes)) != len(classes):
            raise ValueError(
                f"classes must be at least two different labels, but are {self.classes!r}"
            )
        self.scorers_ = [fresh(self.learner) for _ in classes]
        self._classes = classes

    def _signs(self, y: Any, n: int) -> np.ndarray:
        """Return the labels of all scorers, (K, n); ValueError for labels not in classes."""
        if y is None:
            raise ValueError("labels are missing: pass y, one of classes for each row of X")
        labels = np.asarray(y)
        if labels.shape != (n,):
            raise ValueError(f"y must have shape ({n},), one class a row, but has {labels.shape}")
        if labels.dtype.kind == "O":  # a list with None, say
            labels = np.array([str(label) for label in labels])
        hits = labels[None, :] == self._classes[:, None]
        if not isinstance(hits, np.ndarray) or not hits.any(axis=0).all():
            row = 0 if not isinstance(hits, np.ndarray) else int(np.argmin(hits.any(axis=0)))
            raise ValueError(
                f"y has {labels[row]} at row {row}, which is not one of the classes "
                f"{self._classes.tolist()}; name all classes when you make the learner"
            )
        return np.where(hits, 1.0, -1.0)

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return self.scorers_[0].rounds if hasattr(self, "scorers_") else 0

    @property
    def size(self) -> int:
        """Sizes of all scorers together."""
        return sum(one.size for one in self.scorers_) if hasattr(self, "scorers_") else 0

    def scores(self, X: ArrayLike) -> np.ndarray:
        """Return the scores of the rows of X, shape (n, K), one column a class."""
        self._begin()
        return np.stack([one.predict(X) for one in self.scorers_], axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the classes forecast for the rows of X, each on its own; nothing changes."""
        return self._classes_of(self.scores(X))

    def predict_one(self, x: ArrayLike) -> Any:
        """Return the class forecast if ``x`` came next; nothing changes."""
        self._begin()
        return self._classes_of(np.array([[one.predict_one(x) for one in self.scorers_]]))[0]

    def _classes_of(self, scores: np.ndarray) -> np.ndarray:
        return self._classes[np.argmax(scores, axis=1)]

    def learn_one(self, x: ArrayLike, y: Any) -> Self:
        """Play one round; return self."""
        return self.partial_fit(checks.as_point(x, self._width()), [y])

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Play a round for each row of X in order; return self.

        Raises
        ------
        ValueError
            If X or y is not valid, or y has a label that is not in ``classes``; nothing has changed
            then.
        """
        self.run(X, y)
        return self

    def run(self, X: ArrayLike, y: ArrayLike) -> MulticlassRun:
        """Play the online protocol over the rows of X: forecast a class, see it, update.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : array_like of shape (n,)
            One of ``classes`` each.

        Raises
        ------
        ValueError
            As in ``partial_fit``.
        """
        self._begin()
        X = compilable(checks.as_inputs(X, self._width()))
        signs = self._signs(y, len(X))
        for one, labels in zip(self.scorers_, signs, strict=True):
            one._loss()  # all is checked before the first scorer plays
            one._check_labels(labels)
        self.scorers_[0]._advise(X, signs[0])  # they are all alike
        traces, seconds = [], 0.0
        for one, labels in zip(self.scorers_, signs, strict=True):
            begin = time.perf_counter()
            one._begin(X.shape[1])
            traces.append(one._play_blocks(X, labels, FIRST_ROWS))
            seconds += time.perf_counter() - begin
        scores = np.stack([trace.predictions for trace in traces], axis=1)
        chosen = np.argmax(scores, axis=1)
        return MulticlassRun(
            self._classes[chosen],
            signs[chosen, np.arange(len(X))] < 0.0,
            scores,
            np.sum([trace.sizes for trace in traces], axis=0),
            seconds,
        )

    def _width(self) -> int | None:
        return self.scorers_[0]._width if hasattr(self, "scorers_") else None

    def reset(self) -> Self:
        """Go back to no data; return self."""
        for name in ("scorers_", "_classes"):
            vars(self).pop(name, None)
        return self

    def save(self, path: str | os.PathLike) -> None:
        """Write everything into one ``.npz``; ``oklnumba.load(path)`` goes on bit for bit."""
        self._begin()
        arrays: dict[str, np.ndarray] = {}
        meta: dict[str, Any] = {"spec": to_spec(self, arrays), "scorers": []}
        for k, scorer in enumerate(self.scorers_):
            own, more = scorer._contents()
            meta["scorers"].append(own)
            arrays |= {f"scorer{k}_{name}": array for name, array in more.items()}
        write_npz(path, meta, arrays)

    def _adopt(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take over what ``save`` wrote."""
        self._begin()
        for k, (scorer, own) in enumerate(zip(self.scorers_, meta["scorers"], strict=True)):
            prefix = f"scorer{k}_"
            names = [name for name in arrays if name.startswith(prefix)]
            scorer._adopt(own, {name.removeprefix(prefix): arrays[name] for name in names})


class OnlineToBatch(Params):
    """One fixed function out of an online run: f_r of a uniformly drawn round r, or their mean.

    For an i.i.d. stream the expected excess risk of f_r is at most the regret bound divided by n
    (Helmbold and Warmuth 1995; pomdr Theorem 3 for POMDR), and so is that of the mean of several
    draws, for convex losses: ``risk_bound``.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are played afresh; it is not played itself.
    draws : int >= 1
        Rounds drawn, with replacement; the forecast is the mean of their functions. With many draws
        this is close to the average of all f_1, ..., f_n.
    seed : int
        Of the draws.

    Attributes
    ----------
    rounds_ : ndarray of int, shape (draws,)
        The rounds drawn, from 1 to n, in increasing order.

    Remarks
    -------
    f_r depends on the first r - 1 examples only, so the run ends at the last round drawn.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> y = np.sign(X[:, 0] * X[:, 1])
    >>> batch = okl.OnlineToBatch(okl.POMDR(okl.Gaussian(1.0)), draws=20).fit(X[:2000], y[:2000])
    >>> bool((np.sign(batch.predict(X[2000:])) != y[2000:]).mean() < 0.1)
    True
    """

    def __init__(self, learner: Learner, *, draws: int = 1, seed: int = 0):
        self.learner = learner
        self.draws = draws
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Play the stream up to the last round drawn, keeping the functions; return self.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : array_like of shape (n,)

        Raises
        ------
        ValueError
            If an argument is not valid.
        """
        require_count("draws", self.draws, 1)
        require_count("seed", self.seed, 0)
        learner = fresh(self.learner)
        X = checks.as_inputs(X)
        y = checks.as_labels(y, len(X), learner._loss().classes)
        rng = np.random.default_rng(self.seed)
        rounds = np.sort(rng.integers(1, len(X) + 1, int(self.draws)))
        functions: list[tuple[Learner, int]] = []
        for r, times in zip(*np.unique(rounds, return_counts=True), strict=True):
            start = learner.rounds
            if r - 1 > start:
                learner.partial_fit(X[start : r - 1], y[start : r - 1])
            functions.append((copy.deepcopy(learner), int(times)))
        self.rounds_, self._functions, self._n = rounds, functions, len(X)
        return self

    def risk_bound(self, regret_bound: float) -> float:
        """Return regret_bound / n, a bound on the expected excess risk (pomdr Theorem 3).

        If the n examples are drawn i.i.d., E[loss(f(x), y)] for a new example and the function f of
        ``predict`` exceeds that of any function g by at most this, in the mean over streams and
        draws, where ``regret_bound`` bounds the regret against g over all n rounds.

        Parameters
        ----------
        regret_bound : float >= 0
            Of the learner's own loss, which must be convex if ``draws`` is more than 1:
            ``theory.pomdr_bound(kernel, X, y, radius)`` for POMD and POMDR, U^2 / (2 eta) + eta n D
            / 2 for KernelOGD with a radius U and the hinge loss, D = max k(x, x). Where the bound
            is against sum loss + lam |g|^2, as in ``run.certificate``, add lam |g|^2.

        Raises
        ------
        ValueError
            Before ``fit``, or if ``regret_bound`` is not valid.

        Remarks
        -------
        A bound that looks at the stream, as ``theory.pomdr_bound`` does, holds in the mean over
        streams: Theorem 3 has E[A_T]. The theorem promises no excess risk with high probability;
        its 1 - delta is for the size of the dictionary, so there is no such form here.

        Examples
        --------
        >>> import numpy as np, oklnumba as okl
        >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
        >>> learner = okl.KernelOGD(okl.Gaussian(1.0), eta=0.25, radius=5.0)
        >>> batch = okl.OnlineToBatch(learner).fit(X, np.sign(X[:, 0]))
        >>> batch.risk_bound(5.0**2 / (2 * 0.25) + 0.25 * 400 / 2)
        0.25
        """
        if not hasattr(self, "rounds_"):
            raise ValueError("OnlineToBatch has seen no data; call fit(X, y) first")
        checks.require_nonnegative("regret_bound", regret_bound)
        return float(regret_bound) / self._n

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the mean forecast of the functions drawn for the rows of X, shape (n,).

        Raises
        ------
        ValueError
            Before ``fit``, or if X is not valid.
        """
        if not hasattr(self, "rounds_"):
            raise ValueError("OnlineToBatch has seen no data; call fit(X, y) first")
        total = sum(times * function.predict(X) for function, times in self._functions)
        return np.asarray(total) / len(self.rounds_)
