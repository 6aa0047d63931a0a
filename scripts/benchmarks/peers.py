"""Learners of the package and of other libraries, played alike: a forecast, then the label.

The others are no dependency of the package: pip install "oklnumba[benchmark]". A peer first puts
rows into the shape that its library wants (``prepare``), and plays those (``mistakes``).
"""

import copy
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

import oklnumba as okl
from scripts.common import Learner

MODULES = {"Vowpal Wabbit": "vowpalwabbit", "scikit-learn": "sklearn", "river": "river"}


def combinations(
    make: Callable[..., Any] | Learner, wrap: Callable[[Any], Any] | None = None, told: str = "",
    **lists: Sequence,
) -> dict[str, Callable[..., Any]]:  # fmt: skip
    """Return makers of every combination of arguments, by a text that tells it.

    make : a function of these arguments, or a learner whose hyper-parameters they are.
    told : format of the text; "": "name = value, ...".
    """
    if hasattr(make, "set_params"):
        learner, make = make, lambda **given: copy.deepcopy(learner).set_params(**given)
    found = {}
    for values in product(*lists.values()):
        given = dict(zip(lists, values, strict=True))
        short = {name.split("__")[-1]: value for name, value in given.items()}
        shown = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in short.items()}
        text = told.format(**short) or ", ".join(f"{k} = {v}" for k, v in shown.items())
        one = partial(make, **given)
        found[text] = one if wrap is None else lambda one=one: wrap(one())
    return found


def survived(learner: Any, X: np.ndarray, y: np.ndarray) -> okl.Run | None:
    """Return the run, None where numbers overflow (a step too long for squared loss)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return okl.run(learner, X, y)
        except FloatingPointError:
            return None


def installed(library: str) -> bool:
    return find_spec(MODULES[library]) is not None


def absent(*libraries: str) -> tuple[str, ...]:
    """Return which libraries are not installed, and say so."""
    found = tuple(library for library in libraries if not installed(library))
    for library in found:
        print(f'{library} is not installed and is left out: pip install "oklnumba[benchmark]"')
    return found


class Peer:
    """A classifier of labels -1 and +1."""

    rows: int | None = 1000  # it is given at once; None: all
    certificate: Any = None
    size: Any = ""

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        return X, y

    def mistakes(self, prepared: Any) -> int:
        raise NotImplementedError

    def play(self, X: np.ndarray, y: np.ndarray) -> int:
        """Return how many forecasts were wrong, each made before its label was seen."""
        return self.mistakes(self.prepare(X, y))


class Own(Peer):
    """A learner of the package, with or without a column of ones beside its inputs."""

    rows = None

    def __init__(self, learner: Any, ones: bool = False):
        self.learner, self.ones = learner, ones

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        return (np.column_stack([X, np.ones(len(X))]) if self.ones else X), y

    def mistakes(self, prepared: Any) -> int:
        run = okl.run(self.learner, *prepared)
        self.certificate = run.certificate
        return int(run.mistakes.sum())

    @property
    def size(self) -> int:
        return self.learner.size


class Batches(Peer):
    """SGDClassifier of scikit-learn, on features if any: forecasts of a batch, then its labels."""

    def __init__(self, features: Any, **keywords: Any):
        from sklearn.linear_model import SGDClassifier

        self.features, self.fitted = features, features is None
        self.model = SGDClassifier(random_state=0, **keywords)

    def fit_features(self, X: np.ndarray) -> None:
        self.features, self.fitted = self.features and self.features.fit(X), True

    def mistakes(self, prepared: Any) -> int:
        X, y = prepared
        if not self.fitted:
            self.fit_features(X)
        Z = self.features.transform(X) if self.features else X
        known = hasattr(self.model, "coef_")
        wrong = int(np.sum(self.model.predict(Z) != y)) if known else len(y)
        self.model.partial_fit(Z, y, classes=(-1.0, 1.0))
        return wrong

    @property
    def size(self) -> int:
        return self.features.n_components


class Rows(Peer):
    """A classifier of river, row by row, on its dictionaries."""

    def __init__(self, model: Any):
        self.model = model

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        keys = [f"x{j}" for j in range(X.shape[1])]
        rows = [dict(zip(keys, values, strict=True)) for values in X.tolist()]
        return rows, (y > 0.0).tolist()

    def mistakes(self, prepared: Any) -> int:
        wrong = 0
        for x, label in zip(*prepared, strict=True):
            wrong += self.model.predict_one(x) is not label
            self.model.learn_one(x, label)
        return wrong


def sgd_step(eta: float) -> dict[str, Any]:
    """Return keywords of SGDClassifier for a constant step, 0: for its "optimal" schedule."""
    return {"alpha": 1e-6} | ({"learning_rate": "constant", "eta0": eta} if eta else {})


def on_features(
    kind: str, size: int, sigma: float, eta: float, batches: type[Batches] = Batches
) -> Batches:
    """Return logistic SGD on the "RBFSampler" or "Nystroem" of a Gaussian kernel."""
    from sklearn import kernel_approximation

    make = getattr(kernel_approximation, kind)
    features = make(gamma=0.5 / sigma**2, n_components=size, random_state=0)
    return batches(features, loss="log_loss", **sgd_step(eta))


def river_logistic(step: float) -> Any:
    """Return river's logistic regression on inputs standardised by the past."""
    from river import linear_model, optim, preprocessing

    model = linear_model.LogisticRegression(optim.SGD(step), intercept_lr=step)
    return preprocessing.StandardScaler() | model


class Wabbit(Peer):
    """Vowpal Wabbit, one pass over its own binary cache of the rows, its progressive mistakes."""

    rows = None

    def __init__(self, options: str):
        self.options, self.folder = options, tempfile.TemporaryDirectory()

    def __del__(self) -> None:
        self.folder.cleanup()

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        from vowpalwabbit import Workspace

        path = f"{self.folder.name}/rows"
        with open(path, "w", encoding="utf-8") as file:
            for label, values in zip(y.tolist(), X.tolist(), strict=True):
                told = " ".join(f"{j}:{v:.6g}" for j, v in enumerate(values))
                file.write(f"{label:g} |f {told}\n")
        Workspace(f"-d {path} --cache_file {path}.cache --noop --quiet").finish()
        return path, len(y)

    def mistakes(self, prepared: Any) -> int:
        from vowpalwabbit import Workspace

        path, n = prepared
        learner = Workspace(f"-d {path} --cache_file {path}.cache --binary --quiet {self.options}")
        learner.finish()
        if learner.get_weighted_examples() != n:
            raise RuntimeError(f"Vowpal Wabbit read {learner.get_weighted_examples()} of {n} rows")
        return round(learner.get_sum_loss())
