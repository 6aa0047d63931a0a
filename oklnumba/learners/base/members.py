"""Checks of learners that play within others."""

from typing import Any

from oklnumba.core.checks import require
from oklnumba.core.params import clone
from oklnumba.learners.base.learner import Learner


def check_learner(name: str, value: Any) -> Learner:
    """Return a learner that can play within another; raise ValueError for anything else."""
    what = "an oklnumba learner such as okl.FOGD(), or one of your own, derived from okl.Learner"
    require(isinstance(value, Learner), name, value, what)
    alone = f"put {type(value).__name__} outside, or play it alone"
    what = f"a learner that can play inside another ({alone})"
    require(value._traits.is_member, name, value, what)
    return value


def check_member(name: str, value: Any) -> Learner:
    """Return a copy, without data, of the learner that a hyper-parameter is."""
    return clone(check_learner(name, value))
