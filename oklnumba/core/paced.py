"""Long work in small pieces, between which rounds may be played: generators with a result."""

from collections.abc import Generator, Sequence
from functools import partial
from typing import TypeVar

from oklnumba.core.guard import run_together

T = TypeVar("T")
Paced = Generator[None, None, T]


def finish(work: Paced[T]) -> T:
    """Do all that is left of a work in one go; return the result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def do_each(works: Sequence[Paced[T]], at_once: bool) -> Paced[list[T]]:
    """Return the results of works that do not change the same data.

    at_once : all now, on all cores; else piece by piece, one work after the other.
    """
    if at_once:
        return run_together([partial(finish, work) for work in works])
    results = []
    for work in works:
        results.append((yield from work))
    return results
