"""Long work in small steps, between which rounds may be played: generators that return a result."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import TypeVar

from oklnumba.core.guard import run_together

T = TypeVar("T")
Paced = Generator[None, None, T]


def finish(steps: Paced[T]) -> T:
    """Do all steps that are left in one go; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def do_each(works: Sequence[Paced[T]], at_once: bool) -> Paced[list[T]]:
    """Return the results of works that do not change the same data.

    at_once : all steps now, on all cores; else step by step, one work after the other.
    """
    if at_once:
        return run_together([partial(finish, work) for work in works])
    results = []
    for work in works:
        results.append((yield from work))
    return results
