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
===============  =============================================  =================================
"""

from oklnumba import (
    adversary,
    checks,
    datasets,
    factor,
    features,
    hotloops,
    kernels,
    learner,
    losses,
    protocol,
    theory,
)
from oklnumba.awv import PKAWV, KernelAWV, KernelRidge, NystromAWV
from oklnumba.features import FourierFeatures, NystromFeatures, TaylorFeatures
from oklnumba.gradient import FOGD
from oklnumba.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial
from oklnumba.kons import ALD, KONS, KORS, ProsNKONS, SketchedKONS, UniformSampling
from oklnumba.learner import load
from oklnumba.protocol import Run, run

__version__ = "0.1.0"

__all__ = [
    "ALD",
    "FOGD",
    "KONS",
    "KORS",
    "PKAWV",
    "FourierFeatures",
    "Gaussian",
    "KernelAWV",
    "KernelRidge",
    "Laplacian",
    "Linear",
    "Matern",
    "NystromAWV",
    "NystromFeatures",
    "Polynomial",
    "ProsNKONS",
    "Run",
    "SketchedKONS",
    "TaylorFeatures",
    "UniformSampling",
    "adversary",
    "checks",
    "datasets",
    "factor",
    "features",
    "hotloops",
    "kernels",
    "learner",
    "load",
    "losses",
    "protocol",
    "run",
    "theory",
]
