"""Kernel recursive least squares on an ALD dictionary."""

import numpy as np

from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.params import KW_ONLY, nonnegative
from oklnumba.hot.krls import KRLSState, krls_rounds
from oklnumba.hot.primitives.dictionary import Work
from oklnumba.learners.base.expansion import Expansion, measure_span


class KRLS(Expansion[KRLSState, Work]):
    """Kernel recursive least squares with ALD (Engel, Mannor and Meir 2004).

    x_t joins the dictionary where its squared distance to the span is more than ``threshold``; the
    coefficients are those of least squares over all past points, each projected on the span of its
    round. O(m d + m^2) time per round for m atoms; the dictionary stays finite on bounded inputs.

    Parameters
    ----------
    kernel : Kernel
    threshold : float >= 0
        nu of the paper, a squared distance in the RKHS.

    Remarks
    -------
    Two triangular factors take the place of the inverse of the kernel matrix and of the paper's P:
    the same coefficients, and no digits lost. An empty dictionary accepts any point. No
    regulariser, as published.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.KRLS(okl.Gaussian(1.0), threshold=0.001)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]) * X[:, 1])
    >>> bool(run.mean_loss < 0.01), learner.size < 60
    (True, True)
    """

    _layout, _work_layout = KRLSState, Work
    _loop = staticmethod(krls_rounds)
    _REMEDY = "raise threshold, or scale the inputs and labels"

    _: KW_ONLY
    threshold: float = nonnegative(0.01)

    def _start(self, d: int) -> None:
        self._start_expansion(d, self._hyper.threshold)

    def _matrices(self) -> list[Part]:
        m = self.size
        squares = Factored(self._state.Q, m)
        w = squares.half_solve(self._state.z)
        scale = float(np.linalg.norm(self._state.z[:m])) / np.sqrt(self._played)  # of fits
        return [
            measure_part("least squares", squares, [w], [scale]),
            measure_span(self._hyper.kernel, self.atoms, self._state.R, [w], [scale]),
        ]
