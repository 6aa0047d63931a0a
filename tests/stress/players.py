"""What the stress tests play: every learner, some that grow much, and wrappers of both kinds."""

import numpy as np

import oklnumba as okl
from tests.battery import LEARNERS, make, stream

N = 150
PLAYERS = {cls.__name__: (lambda cls=cls: make(cls)) for cls in LEARNERS} | {
    "NystromAWV, no atoms to spare": lambda: okl.NystromAWV(okl.Gaussian(0.3), mu=0.01),
    "NystromAWV with a largest size": lambda: okl.NystromAWV(okl.Gaussian(0.3), max_size=45),
    "NOGD with a full dictionary": lambda: okl.NOGD(okl.Gaussian(0.5), budget=80, rank=10),
    "SkeGD with a full dictionary": lambda: okl.SkeGD(
        okl.Gaussian(0.5), budget=30, sketch=12, columns=10, rank=8, period=10
    ),
    "KRLS with many atoms": lambda: okl.KRLS(okl.Gaussian(0.2), threshold=1e-3),
    "Standardized KRLS": lambda: okl.Standardized(okl.KRLS(okl.Gaussian(0.2), threshold=1e-3)),
    "OneVsRest": lambda: okl.OneVsRest(okl.NystromAWV(okl.Gaussian(0.3), mu=0.01), [-1, 1]),
    "OneVsRest, a learner a class": lambda: okl.OneVsRest(
        okl.KRLS(okl.Gaussian(0.2), threshold=1e-3), [-1, 1]
    ),
    "OneVsRest of SkeGD": lambda: okl.OneVsRest(
        okl.SkeGD(
            okl.Gaussian(0.5), budget=30, sketch=12, columns=10, rank=8, period=10, loss="squared"
        ),
        [-1, 1],
    ),
    "OneVsRest of KONS": lambda: okl.OneVsRest(okl.KONS(okl.Gaussian(0.3)), [-1, 1]),
    "MultiOutput": lambda: okl.MultiOutput(okl.KRLS(okl.Gaussian(0.2), threshold=1e-3)),
    "Experts that grow": lambda: okl.Experts(
        [okl.KRLS(okl.Gaussian(s), threshold=1e-3) for s in (0.1, 0.2)]
        + [okl.Standardized(okl.NystromAWV(okl.Gaussian(0.3), mu=0.01))]
        + [okl.GrowingPKAWV(okl.TaylorFeatures(1), first=20), okl.SketchedKONS(okl.Gaussian(0.3))]
    ),
    "Experts on one dictionary": lambda: okl.Experts(
        [okl.NystromAWV(okl.Gaussian(0.3), lam=lam, mu=0.01) for lam in (0.1, 1.0)]
    ),
    "Experts that restart": lambda: okl.Experts(
        [okl.LinearRidge(), okl.SelfTuning(30), okl.Standardized(okl.SelfTuning(20))], B=None
    ),
    "OnlineToBatch": lambda: okl.OnlineToBatch(okl.KRLS(okl.Gaussian(0.2)), draws=3),
}


def data(player, n=N):
    """Return a stream for a learner; labels -1 and +1 for classes, (n, 2) for two outputs."""
    X, y = stream(make(okl.POMDR) if isinstance(player, okl.OneVsRest) else player, n)
    if isinstance(player, okl.MultiOutput):
        return X, np.column_stack([y, -y])
    return X, y.astype(int) if isinstance(player, okl.OneVsRest) else y
