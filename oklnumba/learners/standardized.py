"""Any learner behind an online standardiser."""

import numpy as np

from oklnumba.components.kernels import refuse_precomputed
from oklnumba.components.scaling import LARGEST, Standardizer
from oklnumba.core.params import KW_ONLY, positive, required
from oklnumba.core.state import Stateful
from oklnumba.hot.primitives.jit import NOT_FINITE
from oklnumba.learners.base.engine import Facts, Trace
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.wrapper import Wrapper, check_member


class Standardized(Wrapper):
    """A learner on inputs that are standardised by past inputs (Welford 1962).

    Each input is brought to mean 0 and scale 1 by the inputs before it, without outliers, as
    ``Standardizer.stream`` does; the first input is 0. So kernel widths and learning rates are in
    units of the data's scale, without a first pass.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself.
    clip : float > 0, optional
        Inputs further than this many scales from the mean are cut to it; None: no cut.

    Remarks
    -------
    The functions of the certificate are of the standardised inputs z_t, each by the statistics of
    its round. A fixed f of the inputs themselves is not among these functions.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal([1e6, 0.0], [1e3, 1e-3], (1000, 2))
    >>> y = np.sign((X[:, 0] - 1e6) * X[:, 1])
    >>> learner = okl.Standardized(okl.PKAWV(okl.TaylorFeatures(4, sigma=2.0)))
    >>> bool(okl.run(learner, X, y).mistakes[200:].mean() < 0.15)
    True
    """

    learner: Learner = required(check_member)
    _: KW_ONLY
    clip: float | None = positive(5.0, optional=True)

    def _check_params(self) -> None:
        refuse_precomputed(self.learner, "Standardized")

    def _facts(self) -> Facts:
        facts = self._inner._facts()
        return facts._replace(space=facts.space and f"{facts.space}, of standardised inputs")

    def _advice(self, X: np.ndarray) -> str | None:
        Z = Standardizer(self.clip).stream(np.clip(X, -LARGEST, LARGEST))
        return self._inner._advice(Z)

    def _start(self, d: int) -> None:
        self._scaler = Standardizer(self._hyper.clip)
        self._scaler._begin(d)
        super()._start(d)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        beyond = (np.abs(X) > LARGEST).any(axis=1)
        if beyond.any():
            self._raise_status(NOT_FINITE, int(np.argmax(beyond)))
        super()._play(self._scaler._stream(X), y, trace)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return super()._forecast(self._scaler._transform(np.clip(X, -LARGEST, LARGEST)))

    def _nested(self) -> dict[str, Stateful]:
        return {"scaler": self._scaler} | super()._nested()
