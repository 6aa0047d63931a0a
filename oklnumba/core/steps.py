"""Long work in small steps, between which rounds may be played: generators that return a result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Paced = Generator[None, None, T]


def finish(steps: Paced[T]) -> T:
    """Do all steps that are left in one go; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
