"""What the base classes know of the states and workspaces of their subclasses.

The NamedTuples of hot/ have these fields. Arrays are (length along each axis), as declared there.
"""

from typing import Protocol

from oklnumba.hot.primitives.jit import Array, Integers


class OfExpansion(Protocol):
    """sum_j alpha_j k(x_j, .) over the atoms."""

    @property
    def counts(self) -> Integers: ...
    @property
    def atoms(self) -> Array: ...
    @property
    def alpha(self) -> Array: ...


class OfSpan(OfExpansion, Protocol):
    """An expansion with R'R, the kernel matrix of its atoms."""

    @property
    def R(self) -> Array: ...


class WithRow(Protocol):
    """Workspace with a kernel row k."""

    @property
    def k(self) -> Array: ...
