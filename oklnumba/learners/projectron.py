"""Projectron and Projectron++: the kernel perceptron on a dictionary that ALD keeps small."""

import numpy as np

from oklnumba.core.params import KW_ONLY, count, flag, nonnegative
from oklnumba.hot.primitives.dictionary import Work
from oklnumba.hot.projectron import ProjectronState, Rules, projectron_forecasts, projectron_rounds
from oklnumba.learners.base.expansion import OnSpan


class Projectron(OnSpan[ProjectronState, Work]):
    """Projectron and Projectron++: the kernel perceptron on a dictionary that ALD keeps small.

    Orabona, Keshet and Caputo 2009. At a mistake, y f(x_t) <= 0, x_t joins the dictionary if it is
    farther than ``threshold`` from its span, else the update is projected on the span. Projectron++
    (``aggressive``) also takes projected steps where the margin is below 1. O(m d) time per round
    for m atoms, O(m^2) at a mistake; the dictionary stays finite on bounded inputs.

    Parameters
    ----------
    kernel : Kernel
    threshold : float >= 0
        eta of the paper, a distance in the RKHS.
    budget : int >= 2, optional
        Most atoms; a full dictionary projects every update.
    aggressive : bool
        Projectron++.

    Remarks
    -------
    The distance itself is compared with the threshold, as in the paper; the author's code (DOGMA)
    compares its square. An empty dictionary accepts any point. A forecast within 1e-12 k(x, x) of 0
    is 0, so it is a mistake, whatever rounding left of it. At threshold 0 Projectron++ takes
    1/4 sqrt((B + 1) / ln(B + 1)) for 1 / threshold with a budget B, infinity without one.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.Projectron(okl.Gaussian(1.0), aggressive=True)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size < 40
    (True, True)
    """

    _layout, _work_layout = ProjectronState, Work
    _loop, _forecasts = staticmethod(projectron_rounds), staticmethod(projectron_forecasts)
    _REMEDY = "raise threshold, or scale the inputs"
    _fixed_loss = "hinge"

    _: KW_ONLY
    threshold: float = nonnegative(0.1)
    budget: int | None = count(None, least=2)
    aggressive: bool = flag(False)

    def _start(self, d: int) -> None:
        p = self._hyper
        budget = float(p.budget or np.inf)
        slack = np.inf  # 1 / threshold, or what takes its place
        if p.threshold > 0.0:
            slack = 1.0 / p.threshold
        elif p.budget:
            slack = 0.25 * float(np.sqrt((budget + 1.0) / np.log(budget + 1.0)))
        rules = Rules(p.threshold, budget, float(p.aggressive), slack)
        self._start_expansion(d, rules, budget)
