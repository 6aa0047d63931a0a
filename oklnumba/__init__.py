"""Online kernel learning with regret guarantees, at the speed of the hardware.

Classes and their papers; docs/algorithms.md has the algorithms and scripts too:

SelfTuning                    ours, after Vovk 1998; Jacobsen, Cutkosky 2024
KernelAWV                     Jézéquel, Gaillard, Rudi 2019, section 2, eq. 3
KernelRidge                   Jézéquel, Gaillard, Rudi 2019, section 2
PKAWV                         Jézéquel, Gaillard, Rudi 2019, Algorithm 1
PKAWV.known_inputs            Jézéquel, Gaillard, Rudi 2019, Corollary 8
GrowingPKAWV                  Jézéquel, Gaillard, Rudi 2019, section 3.1, Theorem 4
NystromAWV                    Jézéquel, Gaillard, Rudi 2019, Algorithm 2
KONS                          Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 1
SketchedKONS                  Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 3
ProsNKONS                     Calandriello, Lazaric, Valko 2017 (NIPS), Algorithm 1
KORS                          Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 2
UniformSampling, ALD          Engel, Mannor, Meir 2004 (ALD)
POMDR                         Li, Liao 2023, Algorithm 1
POMD                          Li, Liao 2023, eq. 2, 6, 7
KernelOGD                     Kivinen, Smola, Williamson 2004
BOGD                          Zhao et al. 2012
Projectron                    Orabona, Keshet, Caputo 2009
KRLS                          Engel, Mannor, Meir 2004
FOGD                          Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 1
NOGD                          Lu, Hoi, Wang, Zhao, Liu 2016, Algorithm 2
SkeGD                         Zhang, Liao 2019
BAO2KS                        Liao, Li 2021
OGD, LazyOGD                  Zhang 2019, sections 2.3 and 3
PNorm                         Zhang 2019, section 2.3, item 3
ExponentiatedGradient, Hedge  Zhang 2019, section 2.3, item 4
AdaptiveFTRL                  Zhang 2019, section 2.5, Corollary 1
StronglyConvexFTRL            Zhang 2019, section 3, Theorem 4
ExpConcaveFTRL                Zhang 2019, section 4, Theorem 6
OnlineNewtonStep              Calandriello, Lazaric, Valko 2017 (ICML), Algorithm 1
SketchedONS                   Luo et al. 2016
Perceptron, Winnow            Zhang 2019, section 2.4
LinearAWV, LinearRidge        Jézéquel, Gaillard, Rudi 2019, section 2
TaylorFeatures                Jézéquel, Gaillard, Rudi 2019, eq. 6
FourierFeatures               Rahimi, Recht 2007
NystromFeatures               Williams, Seeger 2001
WithFeatures                  on the features of any map
Experts                       Vovk 1998; Zhang 2019, Example 6
OneVsRest, MultiOutput        Rifkin, Klautau 2004
Standardizer, Standardized    Welford 1962
OnlineToBatch                 Helmbold, Warmuth 1995; Li, Liao 2023, Theorem 3
interop.OnlineClassifier      Pedregosa et al. 2011
interop.OnlineRegressor       Pedregosa et al. 2011
interop.to_river              Montiel et al. 2021
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oklnumba import theory
from oklnumba.components import losses
from oklnumba.components.dictionaries import ALD, KORS, UniformSampling
from oklnumba.components.features import FourierFeatures, NystromFeatures, TaylorFeatures
from oklnumba.components.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial
from oklnumba.components.scaling import Standardizer
from oklnumba.data import datasets
from oklnumba.data.streams import stream
from oklnumba.experiments import adversary, oco
from oklnumba.experiments.sizes import regret_vs_size
from oklnumba.experiments.sweep import sweep
from oklnumba.experiments.table import Table
from oklnumba.learners.awv import PKAWV, KernelAWV, KernelRidge, LinearAWV, LinearRidge
from oklnumba.learners.bao2ks import BAO2KS
from oklnumba.learners.base.learner import Learner, load
from oklnumba.learners.exp_concave import ExpConcaveFTRL
from oklnumba.learners.experts import Experts
from oklnumba.learners.first_order import (
    OGD,
    AdaptiveFTRL,
    ExponentiatedGradient,
    Hedge,
    LazyOGD,
    Perceptron,
    PNorm,
    StronglyConvexFTRL,
    Winnow,
)
from oklnumba.learners.fogd import FOGD
from oklnumba.learners.growing_pkawv import GrowingPKAWV
from oklnumba.learners.kernel_ogd import BOGD, KernelOGD
from oklnumba.learners.kons import KONS, SketchedKONS
from oklnumba.learners.krls import KRLS
from oklnumba.learners.lift import WithFeatures
from oklnumba.learners.newton import OnlineNewtonStep, SketchedONS
from oklnumba.learners.nogd import NOGD, SkeGD
from oklnumba.learners.nystrom_awv import NystromAWV
from oklnumba.learners.pomdr import POMD, POMDR
from oklnumba.learners.projectron import Projectron
from oklnumba.learners.pros_n_kons import ProsNKONS
from oklnumba.learners.self_tuning.learner import SelfTuning
from oklnumba.learners.standardized import Standardized
from oklnumba.protocol.online_to_batch import OnlineToBatch
from oklnumba.protocol.run import run
from oklnumba.protocol.runs import Run
from oklnumba.protocol.several import MultiOutput, OneVsRest
from oklnumba.protocol.warming import warm_up

MulticlassRun = Run  # what OneVsRest.run returned a class of its own for

__version__ = "0.1.0"

__all__ = [
    "ALD",
    "BAO2KS",
    "BOGD",
    "FOGD",
    "KONS",
    "KORS",
    "KRLS",
    "NOGD",
    "OGD",
    "PKAWV",
    "POMD",
    "POMDR",
    "AdaptiveFTRL",
    "ExpConcaveFTRL",
    "Experts",
    "ExponentiatedGradient",
    "FourierFeatures",
    "Gaussian",
    "GrowingPKAWV",
    "Hedge",
    "KernelAWV",
    "KernelOGD",
    "KernelRidge",
    "Laplacian",
    "LazyOGD",
    "Learner",
    "Linear",
    "LinearAWV",
    "LinearRidge",
    "Matern",
    "MultiOutput",
    "MulticlassRun",
    "NystromAWV",
    "NystromFeatures",
    "OneVsRest",
    "OnlineNewtonStep",
    "OnlineToBatch",
    "PNorm",
    "Perceptron",
    "Polynomial",
    "Projectron",
    "ProsNKONS",
    "Run",
    "SelfTuning",
    "SkeGD",
    "SketchedKONS",
    "SketchedONS",
    "Standardized",
    "Standardizer",
    "StronglyConvexFTRL",
    "Table",
    "TaylorFeatures",
    "UniformSampling",
    "Winnow",
    "WithFeatures",
    "adversary",
    "datasets",
    "interop",
    "load",
    "losses",
    "oco",
    "plots",
    "regret_vs_size",
    "run",
    "stream",
    "sweep",
    "theory",
    "warm_up",
]


def plot(self: Run) -> Any:
    """Draw the error so far against rounds, and the regret with its bound if it is certified.

    Returns
    -------
    Figure, ndarray of Axes
        As ``plots.progress(run)``; ``fig.savefig("run.png")`` writes it.

    Raises
    ------
    ValueError
        If the run has no rounds.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> fig, axes = okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, np.sign(X[:, 0])).plot()
    >>> [ax.get_ylabel() for ax in axes[0]]
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
