"""What the theory says: effective dimension, log det, comparators, regret and bounds by paper."""

from __future__ import annotations

from oklnumba.theory.calandriello2017 import (
    kons_bound,
    kors_size_bound,
    sketched_kons_bound,
)
from oklnumba.theory.comparators import Comparator
from oklnumba.theory.dimension import (
    Meter,
    Reading,
    effective_dimension,
    kernel_alignment,
    leverage_scores,
    log_det,
    online_effective_dimension,
    projection_gap,
)
from oklnumba.theory.hindsight import (
    Hindsight,
    RegretCurve,
    comparator,
    comparator_gap,
    norm_ball_comparator,
    regret,
    regret_curve,
)
from oklnumba.theory.jezequel2019 import (
    CapacityBound,
    awv_bound,
    capacity_bound,
    log_det_bound,
    nystrom_bound,
    pkawv_bound,
    rates,
    taylor_bound,
    taylor_degree,
)
from oklnumba.theory.li2023 import (
    AldBudget,
    ald_budget_bound,
    pomdr_bound,
)
from oklnumba.theory.zhang2019 import (
    adagrad_bound,
    adaptive_ftrl_bound,
    exp_concave_bound,
    exp_concave_rate,
    experts_bound,
    exponentiated_gradient_bound,
    ftrl_ar_bound,
    ftrl_bound,
    mistake_bound,
    ogd_bound,
    ogd_strong_bound,
    p_norm_bound,
    perceptron_bound,
    strongly_convex_bound,
    winnow_bound,
)

__all__ = [
    "AldBudget",
    "CapacityBound",
    "Comparator",
    "Hindsight",
    "Meter",
    "Reading",
    "RegretCurve",
    "adagrad_bound",
    "adaptive_ftrl_bound",
    "ald_budget_bound",
    "awv_bound",
    "capacity_bound",
    "comparator",
    "comparator_gap",
    "effective_dimension",
    "exp_concave_bound",
    "exp_concave_rate",
    "experts_bound",
    "exponentiated_gradient_bound",
    "ftrl_ar_bound",
    "ftrl_bound",
    "kernel_alignment",
    "kons_bound",
    "kors_size_bound",
    "leverage_scores",
    "log_det",
    "log_det_bound",
    "mistake_bound",
    "norm_ball_comparator",
    "nystrom_bound",
    "ogd_bound",
    "ogd_strong_bound",
    "online_effective_dimension",
    "p_norm_bound",
    "perceptron_bound",
    "pkawv_bound",
    "pomdr_bound",
    "projection_gap",
    "rates",
    "regret",
    "regret_curve",
    "sketched_kons_bound",
    "strongly_convex_bound",
    "taylor_bound",
    "taylor_degree",
    "winnow_bound",
]


def __dir__() -> list[str]:
    return __all__
