"""Checks of arguments by their names, which mean the same in all functions of theory."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from oklnumba.components import losses
from oklnumba.components.features import check_features
from oklnumba.components.kernels import check_kernel
from oklnumba.core import checks
from oklnumba.core.checks import P, R

POSITIVE = "lam alpha alpha_tilde beta C eta eps lipschitz mu kappa radius largest R sigma"
NONNEGATIVE = "B norm alignment hinge_loss gap"
COUNTS = "n m d count size rank"
RULES: dict[str, Any] = {
    "kernel": check_kernel,
    "features": check_features,
    "loss": lambda name, loss: losses.get(loss).name,
    "delta": "(0, 1)",
    **dict.fromkeys(POSITIVE.split(), checks.require_positive),
    **dict.fromkeys(NONNEGATIVE.split(), checks.require_nonnegative),
    **dict.fromkeys(COUNTS.split(), partial(checks.require_count, least=1)),
}


def checks_arguments(**more_rules: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a formula: check and convert its arguments before each call.

    A rule is a callable (name, value), an interval such as "(0, 1]", or None for no check.
    Arguments without a rule pass unchecked, and so does None if it is the default.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        of_checked: Callable[..., R] = function
        parameters = inspect.signature(function).parameters
        rules = {k: rule for k, rule in (RULES | more_rules).items() if k in parameters}

        def check(name: str, value: Any) -> Any:
            rule = rules.get(name)
            if rule is None or (value is None and parameters[name].default is None):
                return value
            if isinstance(rule, str):
                return checks.require_within(name, value, rule)
            return rule(name, value)

        @checks.refuses_overflow
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            first = [check(name, value) for name, value in zip(parameters, args, strict=False)]
            named = {name: check(name, value) for name, value in kwargs.items()}
            # If there are too many arguments, the function raises the TypeError.
            return of_checked(*first, *args[len(first) :], **named)

        return call

    return decorate
