"""Signals held back while a learner changes: Ctrl-C takes effect between blocks of rounds.

Python runs a signal's handler between any two of its steps, in the main thread only. A learner
whose compiled loop has ended but whose rounds are not yet counted would be left in between. So
blocks of rounds are played with a handler that only notes what came; at the end of the block the
old one is back and gets it. Other threads see no signals, and nothing is done there.
"""

from __future__ import annotations

import os
import threading

# signal.signal wraps these in enumerations, ten times the cost of a round of a small learner.
from _signal import SIG_DFL, SIGINT, SIGTERM, getsignal, raise_signal, signal
from _thread import get_ident
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

AT_ONCE = 3  # signals in one block; the third does not wait for its end


class _Hold:
    """``with HOLD:`` holds SIGINT back; it comes when the outermost of these has ended."""

    __slots__ = ("came", "depth", "main", "note", "old")

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        self.depth, self.came = 0, 0
        self.old: Any = None
        self.note = self._note  # bound once: each round of a small learner passes here

    def __enter__(self) -> None:
        if get_ident() != self.main:
            return
        if not self.depth:
            old = getsignal(SIGINT)
            if callable(old):
                self.came, self.old = 0, old
                signal(SIGINT, self.note)
            else:  # no function: it is not ours
                self.old = None
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        if get_ident() != self.main:
            return
        self.depth -= 1
        if self.depth or self.old is None:
            return
        signal(SIGINT, self.old)
        while self.came:
            self.came -= 1
            raise_signal(SIGINT)

    def _note(self, number: int, frame: Any) -> None:
        self.came += 1
        if self.came >= AT_ONCE:
            self.came = 0
            raise KeyboardInterrupt


HOLD = _Hold()


def _in_child() -> None:
    """After a fork the thread that is left is the main one, and holds nothing back."""
    if HOLD.depth and HOLD.old is not None and get_ident() == HOLD.main:
        signal(SIGINT, HOLD.old)
    HOLD.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


# Where signals come from to a run in another thread than the main one: the list of who began it.
FROM_ABOVE: ContextVar[list[int] | None] = ContextVar("FROM_ABOVE", default=None)


class Stop:
    """What ends a run: the first signal after the block, the second so that it raises, the third.

    In the main thread, as long as the context lasts. A signal that comes while the run waits for
    its data, when it has set ``open``, raises KeyboardInterrupt there; the run takes it for the
    first. In other threads it ends a run after the block if whoever began it writes a signal into
    the list that stands in ``FROM_ABOVE``.

    Parameters
    ----------
    terminate : bool
        Whether SIGTERM ends the run too.
    """

    def __init__(self, terminate: bool):
        self.numbers = (SIGINT, SIGTERM) if terminate else (SIGINT,)
        self.old: dict[int, Any] = {}
        above = FROM_ABOVE.get()
        self.came: list[int] = [] if above is None else above
        self.open = False  # whether a signal raises at once, for nothing changes

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in self.numbers:
            old = getsignal(number)
            if callable(old) or (number == SIGTERM and old == SIG_DFL):
                self.old[number] = old
                signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for number, old in self.old.items():
            signal(number, old)
        if self.old and len(self.came) > 1 and kind is None:
            raise_signal(self.came[-1])

    def _note(self, number: int, frame: Any) -> None:
        self.came.append(number)
        if self.open or len(self.came) >= AT_ONCE:
            raise KeyboardInterrupt
