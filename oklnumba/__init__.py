"""Online kernel learning with regret guarantees, at the speed of the hardware.

===============  =============================================  =================================
class            paper                                          script
===============  =============================================  =================================
KernelAWV        Jezequel et al. 2019, section 2, eq. (3)       jezequel2019_fig2.py, _fig4.py
KernelRidge      Jezequel et al. 2019, section 2                jezequel2019_fig2.py, _fig4.py
PKAWV            Jezequel et al. 2019, Algorithm 1              jezequel2019_fig2.py, _fig4.py
NystromAWV       Jezequel et al. 2019, Algorithm 2              jezequel2019_fig2.py, _fig4.py
KORS             Calandriello et al. 2017, Algorithm 2          calandriello2017_kors.py
KONS             Calandriello et al. 2017, Algorithm 1          calandriello2017_gamma.py
SketchedKONS     Calandriello et al. 2017, Algorithm 3          calandriello2017_gamma.py
ProsNKONS        Calandriello et al. 2017 (NIPS), Algorithm 1   calandriello2017_gamma.py
UniformSampling  Calandriello et al. 2017, section 6            calandriello2017_kors.py
ALD              Engel, Mannor and Meir 2004                    calandriello2017_kors.py
FOGD             Lu et al. 2016, Algorithm 1                    jezequel2019_fig2.py, _fig4.py
OGD, LazyOGD     Zhang 2019, sections 2.3 and 3                 zhang2019_bounds.py, _geometry.py
PNorm            Zhang 2019, section 2.3, item 3                zhang2019_bounds.py, _geometry.py
Hedge            Zhang 2019, section 2.3, item 4                zhang2019_*.py
AdaptiveFTRL     Zhang 2019, section 2.5, Corollary 1           zhang2019_bounds.py
StronglyConvex-  Zhang 2019, section 3, Theorem 4               zhang2019_bounds.py
FTRL
ExpConcaveFTRL   Zhang 2019, section 4, Theorem 6               zhang2019_bounds.py, _portfolio.py
OnlineNewton-    Calandriello et al. 2017, Algorithm 1          benchmark_oco.py
Step
SketchedONS      Luo et al. 2016                                benchmark_oco.py
Perceptron,      Zhang 2019, section 2.4                        zhang2019_bounds.py
Winnow
LinearAWV,       Jezequel et al. 2019, section 2                benchmark_oco.py
LinearRidge
WithFeatures     (any of these on Taylor, Fourier, Nystrom)     benchmark_oco.py
Experts          Vovk 1998; Zhang 2019, Example 6               benchmark_oco.py
===============  =============================================  =================================
"""

from oklnumba import (
    adversary,
    checks,
    datasets,
    experts,
    factor,
    features,
    hotloops,
    kernels,
    learner,
    losses,
    oco,
    protocol,
    theory,
)
from oklnumba.awv import PKAWV, KernelAWV, KernelRidge, NystromAWV
from oklnumba.experts import Experts
from oklnumba.features import FourierFeatures, NystromFeatures, TaylorFeatures
from oklnumba.gradient import FOGD
from oklnumba.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial
from oklnumba.kons import ALD, KONS, KORS, ProsNKONS, SketchedKONS, UniformSampling
from oklnumba.learner import load
from oklnumba.oco import (
    OGD,
    AdaptiveFTRL,
    ExpConcaveFTRL,
    ExponentiatedGradient,
    Hedge,
    LazyOGD,
    LinearAWV,
    LinearRidge,
    OnlineNewtonStep,
    Perceptron,
    PNorm,
    SketchedONS,
    StronglyConvexFTRL,
    Winnow,
    WithFeatures,
)
from oklnumba.protocol import Run, run

__version__ = "0.1.0"

__all__ = [
    "ALD",
    "FOGD",
    "KONS",
    "KORS",
    "OGD",
    "PKAWV",
    "AdaptiveFTRL",
    "ExpConcaveFTRL",
    "Experts",
    "ExponentiatedGradient",
    "FourierFeatures",
    "Gaussian",
    "Hedge",
    "KernelAWV",
    "KernelRidge",
    "Laplacian",
    "LazyOGD",
    "Linear",
    "LinearAWV",
    "LinearRidge",
    "Matern",
    "NystromAWV",
    "NystromFeatures",
    "OnlineNewtonStep",
    "PNorm",
    "Perceptron",
    "Polynomial",
    "ProsNKONS",
    "Run",
    "SketchedKONS",
    "SketchedONS",
    "StronglyConvexFTRL",
    "TaylorFeatures",
    "UniformSampling",
    "Winnow",
    "WithFeatures",
    "adversary",
    "checks",
    "datasets",
    "experts",
    "factor",
    "features",
    "hotloops",
    "kernels",
    "learner",
    "load",
    "losses",
    "oco",
    "protocol",
    "run",
    "theory",
]
