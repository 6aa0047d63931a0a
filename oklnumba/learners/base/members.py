"""Learners that play within others: their checks, and what they need of labels."""

from collections.abc import Iterable
from typing import Any

from oklnumba.core.checks import require
from oklnumba.core.params import clone
from oklnumba.learners.base.learner import Learner


def check_learner(name: str, value: Any) -> Learner:
    """Return a learner that can play within another; raise ValueError for anything else."""
    require(isinstance(value, Learner), name, value, "an oklnumba learner such as okl.FOGD()")
    alone = f"put {type(value).__name__} outside, or play it alone"
    what = f"a learner that can play inside another ({alone})"
    require(value._traits.is_member, name, value, what)
    return value


def check_member(name: str, value: Any) -> Learner:
    """Return a copy, without data, of the learner that a hyper-parameter is."""
    return clone(check_learner(name, value))


def find_needs(learners: Iterable[Learner]) -> dict[str, Any]:
    """Return what some of these learners need of labels, by the names of ``Traits``."""
    names = "needs_each_label", "needs_last_label", "signs"
    traits = [one._traits for one in learners]
    return {k: next(filter(None, (getattr(one, k) for one in traits)), None) for k in names}
