"""AOGD-ALD: kernel gradient descent with adaptive steps on a dictionary that ALD keeps small."""

from math import inf, sqrt

from oklnumba.components.losses import loss_field
from oklnumba.core.guard import locked
from oklnumba.core.params import KW_ONLY, nonnegative, positive
from oklnumba.hot.aogd import APART, GRADIENTS, AOGDState, Rules, aogd_rounds
from oklnumba.hot.primitives.dictionary import Work
from oklnumba.learners.base.expansion import OnSpan


class AOGD(OnSpan[AOGDState, Work]):
    """AOGD-ALD: kernel gradient descent with adaptive steps on a dictionary that ALD keeps small.

    Li and Liao 2023 (ICML), "Nearly optimal algorithms with sublinear computational complexity for
    online kernel regression". Where x_t is nearly in the span of the dictionary its gradient is
    projected on it; else x_t joins. The step is U / sqrt(sum of squared gradients), and f stays in
    the ball |f| <= U. O(m d + m^2) time per round for m atoms.

    The regret against every |f| <= U is at most 3 U sqrt(sum g_t^2 |v_t|^2) + U sum |g_t| far_t,
    with the slopes g_t, and far_t the distance to the span of a point that was projected, to v_t
    (``regret_bound``). For the squared loss this is small if the best function's loss is
    (``theory.aogd_bound``).

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A convex loss of losses.py.
    radius : float > 0
        U.
    threshold : float >= 0
        The distance to the span up to which points are projected; c / sqrt(n) for n rounds.

    Remarks
    -------
    We read the paper's abstract and the authors' code; the bounds are ours. The code adds 1 under
    the root, which gives labels a unit, and stops projecting once the dictionary has some sqrt(d n)
    atoms; both are left out. An empty dictionary accepts any point with k(x, x) > 0.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.AOGD(okl.Gaussian(1.0), radius=5.0, threshold=0.1)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.size
    (0.06, 16)
    """

    _layout, _work_layout = AOGDState, Work
    _loop = staticmethod(aogd_rounds)
    _REMEDY = "raise threshold, or scale the inputs and labels"

    _: KW_ONLY
    loss: str = loss_field("squared")
    radius: float = positive(25.0)
    threshold: float = nonnegative(0.1)

    @locked
    def regret_bound(self) -> float:
        """Return the bound against all |f| <= U so far; infinite if labels came late."""
        if self._learned_late:
            return inf
        if self._width is None:
            return 0.0
        sums = self._state.sums
        return float(self._hyper.radius * (3.0 * sqrt(sums[GRADIENTS]) + sums[APART]))

    def _start(self, d: int) -> None:
        p = self._hyper
        rules = Rules(self._loss_code, p.radius, p.threshold)
        self._start_expansion(d, rules, sums=3)
