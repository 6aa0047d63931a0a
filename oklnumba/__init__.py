"""Online kernel learning with regret guarantees, at the speed of the hardware.

===============  =============================================  =================================
class            paper                                          script
===============  =============================================  =================================
KernelAWV        Jezequel et al. 2019, section 2, eq. (3)       jezequel2019_fig2.py, _fig4.py
KernelRidge      Jezequel et al. 2019, section 2                jezequel2019_fig2.py, _fig4.py
PKAWV            Jezequel et al. 2019, Algorithm 1              jezequel2019_fig2.py, _fig4.py
NystromAWV       Jezequel et al. 2019, Algorithm 2              jezequel2019_fig2.py, _fig4.py
KORS             Calandriello et al. 2017, Algorithm 2          (inside NystromAWV)
POMD             Li and Liao 2023, eq. 2, 6 and 7               li2023_budget.py
POMDR            Li and Liao 2023, Algorithm 1                  li2023_tab2.py to _tab5.py
KernelOGD        Kivinen et al. 2004 (NORMA)                    regret_vs_dictionary.py
BOGD             Zhao et al. 2012                               regret_vs_dictionary.py
Projectron       Orabona et al. 2009                            regret_vs_dictionary.py
KRLS             Engel et al. 2004                              regret_vs_dictionary.py
FOGD             Lu et al. 2016, Algorithm 1                    li2023_tab2.py, jezequel2019_fig2.py
NOGD             Lu et al. 2016, Algorithm 2                    li2023_tab2.py, _tab4.py
SkeGD            Zhang and Liao 2019                            li2023_tab2.py, _tab4.py
BAO2KS           Liao and Li 2021                               li2023_tab2.py, _tab4.py
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
    wrappers,
)
from oklnumba.awv import PKAWV, KernelAWV, KernelRidge, NystromAWV
from oklnumba.features import FourierFeatures, NystromFeatures, TaylorFeatures
from oklnumba.gradient import BAO2KS, BOGD, FOGD, KRLS, NOGD, KernelOGD, Projectron, SkeGD
from oklnumba.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial
from oklnumba.kons import KORS
from oklnumba.learner import load
from oklnumba.pomdr import POMD, POMDR
from oklnumba.protocol import Run, run
from oklnumba.wrappers import MulticlassRun, OneVsRest, OnlineToBatch

__version__ = "0.1.0"

__all__ = [
    "BAO2KS",
    "BOGD",
    "FOGD",
    "KORS",
    "KRLS",
    "NOGD",
    "PKAWV",
    "POMD",
    "POMDR",
    "FourierFeatures",
    "Gaussian",
    "KernelAWV",
    "KernelOGD",
    "KernelRidge",
    "Laplacian",
    "Linear",
    "Matern",
    "MulticlassRun",
    "NystromAWV",
    "NystromFeatures",
    "OneVsRest",
    "OnlineToBatch",
    "Polynomial",
    "Projectron",
    "Run",
    "SkeGD",
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
    "wrappers",
]
