"""Online kernel learning with regret guarantees, at the speed of the hardware.

===============  =============================================  =================================
class            paper                                          script
===============  =============================================  =================================
KernelAWV        Jezequel et al. 2019, section 2, eq. (3)       jezequel2019_fig2.py, _fig4.py
KernelRidge      Jezequel et al. 2019, section 2                jezequel2019_fig2.py, _fig4.py
PKAWV            Jezequel et al. 2019, Algorithm 1              jezequel2019_fig2.py, _fig4.py
NystromAWV       Jezequel et al. 2019, Algorithm 2              jezequel2019_fig2.py, _fig4.py
KORS             Calandriello et al. 2017, Algorithm 2          (inside NystromAWV)
FOGD             Lu et al. 2016, Algorithm 1                    jezequel2019_fig2.py, _fig4.py
===============  =============================================  =================================
"""

from oklnumba import (
    checks,
    datasets,
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
from oklnumba.kons import KORS
from oklnumba.learner import load
from oklnumba.pomdr import POMD, POMDR
from oklnumba.protocol import Run, run

__version__ = "0.1.0"

__all__ = [
    "FOGD",
    "KORS",
    "PKAWV",
    "POMD",
    "POMDR",
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
    "Run",
    "TaylorFeatures",
    "checks",
    "datasets",
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
