"""Effective dimension, log det, comparators, regret, and the bounds by paper.

Docstrings do not list these arguments, which mean the same in all functions:

- kernel: a Kernel; features: TaylorFeatures, NystromFeatures or BasisFeatures, coordinates in an
  orthonormal basis of a subspace of its RKHS;
- X, y: arrays of shape (n, d) and (n,), the inputs and labels in the order of the stream;
- lam or alpha > 0: regularisation, lam |f|^2;
- loss: one of ``losses.LOSSES``; C > 0: the bound on forecasts of the KONS family;
- B >= 0: the largest |y|; norm >= 0: |f| of the competitor, 0 for the regret against the best
  penalised function;
- gradients, w: arrays of shape (n, d) and (d,), the gradients of a game as they were played, and
  the comparator; eta > 0: the step;
- n, d >= 1: rounds, and the width of the inputs.

An argument outside its domain raises a ValueError that names it. Numbers beyond double precision,
or a solver that is not within 1e-6 of the best function (lam too small), raise a
FloatingPointError.
Examples assume ``import oklnumba as okl``.
"""

from oklnumba.components.losses import kons_step
from oklnumba.theory.aggregation import experts_bound, fixed_share_bound, mlpoly_bound
from oklnumba.theory.calandriello2017 import (
    con_kons_bound, frequent_kons_bound, kons_bound, kors_size_bound, sketched_kons_bound,
)  # fmt: skip
from oklnumba.theory.comparators import Comparator
from oklnumba.theory.dimension import (
    Meter, Reading, effective_dimension, kernel_alignment, leverage_scores, log_det,
    online_effective_dimension, projection_gap,
)  # fmt: skip
from oklnumba.theory.hindsight import (
    Hindsight, RegretCurve, comparator, norm_ball_comparator, regret,
)  # fmt: skip
from oklnumba.theory.jacobsen2024 import discounted_awv_bound
from oklnumba.theory.jezequel2019 import (
    CapacityBound, SizeBound, awv_bound, bounded_kernel_lam, capacity_bound,
    gaussian_dimension_bound, growing_bound, log_det_bound, nystrom_bound, nystrom_size_bound,
    pkawv_bound, rates, ridge_bound, taylor_bound, taylor_degree,
)  # fmt: skip
from oklnumba.theory.jezequel2020 import aioli_bound
from oklnumba.theory.li2023 import (
    AldBudget, ald_budget_bound, aogd_bound, pomdr_bound, pomdr_data_bound,
)  # fmt: skip
from oklnumba.theory.orabona2016 import coin_betting_bound
from oklnumba.theory.zhang2019 import (
    adagrad_bound, adaptive_ftrl_bound, exp_concave_bound, exp_concave_rate,
    exponentiated_gradient_bound, ftrl_ar_bound, ftrl_bound, gradient_steps_bound, mistake_bound,
    ogd_bound, ogd_strong_bound, p_norm_bound, perceptron_bound, strongly_convex_bound, svm_rounds,
    winnow_bound,
)  # fmt: skip

__all__ = [
    "AldBudget", "CapacityBound", "Comparator", "Hindsight", "Meter", "Reading", "RegretCurve",
    "SizeBound", "adagrad_bound", "adaptive_ftrl_bound", "aioli_bound", "ald_budget_bound",
    "aogd_bound", "awv_bound", "bounded_kernel_lam", "capacity_bound", "coin_betting_bound",
    "comparator", "con_kons_bound", "discounted_awv_bound", "effective_dimension",
    "exp_concave_bound", "exp_concave_rate", "experts_bound", "exponentiated_gradient_bound",
    "fixed_share_bound", "frequent_kons_bound", "ftrl_ar_bound", "ftrl_bound",
    "gaussian_dimension_bound", "gradient_steps_bound", "growing_bound", "kernel_alignment",
    "kons_bound", "kons_step", "kors_size_bound", "leverage_scores", "log_det", "log_det_bound",
    "mistake_bound", "mlpoly_bound", "norm_ball_comparator", "nystrom_bound", "nystrom_size_bound",
    "ogd_bound", "ogd_strong_bound", "online_effective_dimension", "p_norm_bound",
    "perceptron_bound", "pkawv_bound", "pomdr_bound", "pomdr_data_bound", "projection_gap", "rates",
    "regret", "ridge_bound", "sketched_kons_bound", "strongly_convex_bound", "svm_rounds",
    "taylor_bound", "taylor_degree", "winnow_bound",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
