"""Long work in small steps, between which rounds may be played: generators that return a result."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, TypeVar

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
    results: list[Any] = [None] * len(works)

    def end(i: int) -> None:
        results[i] = finish(works[i])

    if at_once:
        run_together([partial(end, i) for i in range(len(works))])
        return results
    for i, work in enumerate(works):
        results[i] = yield from work
    return results
