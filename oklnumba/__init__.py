"""Online kernel learning with regret guarantees, at the speed of the hardware.

Start with ``SelfTuning``, which has nothing to tune, and with ``run``, which plays a learner on a
stream. The docstring of a class names its paper; docs/algorithms.md is a table of all algorithms.
Examples assume ``import numpy as np`` and ``import oklnumba as okl``.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oklnumba import theory
from oklnumba.components import losses
from oklnumba.components.dictionaries import ALD, KORS, UniformSampling
from oklnumba.components.features import (
    BasisFeatures, FourierFeatures, NystromFeatures, TaylorFeatures,
)  # fmt: skip
from oklnumba.components.kernels import (
    Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, Precomputed,
)  # fmt: skip
from oklnumba.components.metric import Metric, learned_metric
from oklnumba.components.scaling import Standardizer
from oklnumba.core.checks import require
from oklnumba.core.files import read_npz
from oklnumba.data import datasets
from oklnumba.data.streams import stream
from oklnumba.experiments import adversary, oco
from oklnumba.experiments.sizes import regret_vs_size
from oklnumba.experiments.sweep import sweep
from oklnumba.experiments.table import Table
from oklnumba.learners.aioli import AIOLI
from oklnumba.learners.aogd import AOGD
from oklnumba.learners.awv import PKAWV, KernelAWV, KernelRidge, LinearAWV, LinearRidge
from oklnumba.learners.bao2ks import BAO2KS
from oklnumba.learners.base.contents import restore_learner
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.exp_concave import ExpConcaveFTRL
from oklnumba.learners.experts import Experts
from oklnumba.learners.first_order import (
    OGD, AdaptiveFTRL, CoinBetting, ExponentiatedGradient, Hedge, LazyOGD, Perceptron, PNorm,
    StronglyConvexFTRL, Winnow,
)  # fmt: skip
from oklnumba.learners.fogd import FOGD
from oklnumba.learners.frequent_kons import FrequentKONS
from oklnumba.learners.growing_pkawv import GrowingPKAWV
from oklnumba.learners.horizon import Horizon
from oklnumba.learners.intervals import Intervals
from oklnumba.learners.kernel_ogd import BOGD, KernelOGD
from oklnumba.learners.kons import KONS, SketchedKONS
from oklnumba.learners.krls import KRLS
from oklnumba.learners.lags import Lags
from oklnumba.learners.lift import WithFeatures
from oklnumba.learners.newton import OnlineNewtonStep, SketchedONS
from oklnumba.learners.nogd import NOGD, SkeGD
from oklnumba.learners.nystrom_awv import NystromAWV
from oklnumba.learners.pomdr import POMD, POMDR
from oklnumba.learners.projectron import Projectron
from oklnumba.learners.pros_n_kons import ProsNKONS
from oklnumba.learners.refit import Refit
from oklnumba.learners.self_tuning.learner import SelfTuning
from oklnumba.learners.monitored import Monitored
from oklnumba.learners.standardized import Standardized
from oklnumba.learners.tree import Tree
from oklnumba.protocol.online_to_batch import OnlineToBatch
from oklnumba.protocol.run import run
from oklnumba.protocol.runs import Run
from oklnumba.protocol.several import MultiOutput, OneVsRest
from oklnumba.protocol.warming import warm_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__version__ = "0.1.0"

__all__ = [
    "AIOLI", "ALD", "AOGD", "BAO2KS", "BOGD", "FOGD", "KONS", "KORS", "KRLS", "NOGD", "OGD",
    "PKAWV", "POMD", "POMDR", "AdaptiveFTRL", "BasisFeatures", "CoinBetting", "ExpConcaveFTRL",
    "Experts", "ExponentiatedGradient", "FourierFeatures", "FrequentKONS", "Gaussian",
    "GrowingPKAWV", "Hedge", "Horizon", "Intervals", "Kernel", "KernelAWV", "KernelOGD",
    "KernelRidge", "Lags", "Laplacian", "LazyOGD", "Learner", "Linear", "LinearAWV", "LinearRidge",
    "Matern", "Metric", "Monitored", "MultiOutput", "NystromAWV", "NystromFeatures", "OneVsRest",
    "OnlineNewtonStep", "OnlineToBatch", "PNorm", "Perceptron", "Polynomial", "Precomputed",
    "Projectron", "ProsNKONS", "Refit", "Run", "SelfTuning", "SkeGD", "SketchedKONS", "SketchedONS",
    "Standardized", "Standardizer", "StronglyConvexFTRL", "Table", "TaylorFeatures", "Tree",
    "UniformSampling", "Winnow", "WithFeatures", "adversary", "datasets", "interop",
    "learned_metric", "load", "losses", "oco", "plots", "regret_vs_size", "run", "stream", "sweep",
    "theory", "warm_up",
]  # fmt: skip


def load(path: str | os.PathLike, classes: Sequence[type] = ()) -> Learner | Any:
    """Return the learner, Run or Table saved at ``path``; of a checkpoint the learner.

    A learner goes on bit for bit where it stopped; one of your own class needs
    ``classes=[MyLearner]``. The run of a checkpoint is read by ``Run.load``.

    A damaged file raises ValueError. Nothing else is checked: load files you trust.

    Examples
    --------
    >>> import os, tempfile
    >>> learner = okl.KernelAWV(okl.Gaussian(1.0)).learn_one([0.5], 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(os.path.join(folder, "awv.npz"))
    ...     again = okl.load(os.path.join(folder, "awv.npz"))
    >>> again.rounds, again.predict_one([0.5]) == learner.predict_one([0.5])
    (1, True)
    """
    listed = isinstance(classes, list | tuple) and all(isinstance(one, type) for one in classes)
    require(listed, "classes", classes, "a list of your own classes, such as [MyLearner]")
    meta, arrays = read_npz(path)
    if "spec" in meta:
        return restore_learner(path, meta, arrays, classes)
    if "table" in meta:
        return Table._from_file(path, meta)
    return Run._from_file(path, meta, arrays)


def plot(self: Run) -> "Figure":
    """Draw the error so far against rounds, and the regret with its bound if it is certified.

    Returns ``plots.progress(run)``: a notebook shows it, ``figure.savefig("run.png")`` writes it.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> figure = okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, np.sign(X[:, 0])).plot()
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['mistakes so far (%)', 'regret (sum of squared losses)']
    """
    return __getattr__("plots").progress(self)


Run.plot = plot  # plots stands above Run and draws it; here the two are joined
del plot


def __getattr__(name: str) -> Any:
    if name in ("interop", "plots"):  # loaded on first use: matplotlib takes long to import
        return import_module(f"oklnumba.{name}")
    raise AttributeError(f"module 'oklnumba' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
