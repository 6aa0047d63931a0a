"""The bound of Jezequel, Gaillard and Rudi 2020 (aioli): improper logistic regression."""

from typing import Any

from numpy.typing import ArrayLike

from oklnumba.core import checks
from oklnumba.theory.arguments import checks_arguments
from oklnumba.theory.dimension import log_det


@checks_arguments(B=checks.require_positive)
def aioli_bound(kernel: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0) -> float:
    """Return lam |f|^2 + (1 + B) log det(I + K / (8 (1 + B) lam)), the regret bound of AIOLI.

    Against every f in the span of its features with |f(x_t)| <= 2 B on the stream; B is that of the
    learner, positive. For K of the features give ``Linear()`` and ``features.transform(X)``;
    with coordinates in a kernel's RKHS, the K of that kernel is larger and holds too. The proof is
    in docs/aioli.md; ``AIOLI.regret_bound`` is smaller, but needs the labels.

    Examples
    --------
    >>> round(okl.theory.aioli_bound(okl.Linear(), [[1.0], [1.0]], lam=1.0), 6)
    0.235566
    """
    return lam * norm**2 + (1.0 + B) * log_det(kernel, X, 8.0 * (1.0 + B) * lam)
