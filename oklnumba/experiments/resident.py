"""The most memory that a piece of work held, where one process does nothing else meanwhile."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import ClassVar, Self

from oklnumba.core.guard import HOLD

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field: str) -> int:
    """Return bytes of this process: VmRSS, its resident set now, or VmHWM, the peak of that."""
    found = re.search(rf"{field}:\s+(\d+) kB", STATUS.read_text(encoding="ascii"))
    if found is None:
        raise OSError(f"{STATUS} has no {field}")
    return 1024 * int(found[1])


class Peak:
    """``with Peak() as peak:`` measures how far the resident set rises above where it begins.

    Linux keeps the peak of a process and sets it to the present on demand, which is done here.

    Attributes
    ----------
    rise : int or None
        Bytes, after the end; None if another of these has overlapped, in another thread of the
        process, or the system does not say.
    """

    running: ClassVar[set[Peak]] = set()
    lock: ClassVar[threading.Lock] = threading.Lock()

    def __enter__(self) -> Self:
        self.rise: int | None = None
        self.begin: int | None = None
        try:
            self._start()
            return self
        except BaseException:  # Ctrl-C: no __exit__ follows, and it would overlap all after it
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _start(self) -> None:
        with HOLD, self.lock:
            self.running.add(self)
            if len(self.running) > 1:
                for one in self.running:
                    one.begin = None
                return
            try:
                RESET.write_text("5", encoding="ascii")
                self.begin = resident("VmRSS")
            except OSError:
                pass

    def _leave(self) -> None:
        with HOLD, self.lock:
            self.running.discard(self)
            if self.begin is not None:
                self.rise = max(resident("VmHWM") - self.begin, 0)
