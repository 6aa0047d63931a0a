"""What the base classes know of the states and workspaces of their subclasses.

The NamedTuples of hot/ have these fields. Arrays are (length along each axis), as declared there.
"""

from typing import Protocol

from oklnumba.hot.primitives.dictionary import Dictionary
from oklnumba.hot.primitives.factor import Factor
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


class OfFactor(Protocol):
    """A = U' D U and the coordinates c."""

    @property
    def U(self) -> Array: ...
    @property
    def inv_d(self) -> Array: ...
    @property
    def c(self) -> Array: ...


class OnDictionary(Protocol):
    """A factor on the span of a dictionary."""

    @property
    def dictionary(self) -> Dictionary: ...
    @property
    def factor(self) -> OfFactor: ...


class WithFactor(Protocol):
    """A learner on features."""

    @property
    def factor(self) -> Factor: ...


class OnFeatures(WithFactor, Protocol):
    """AWV or ridge regression on features: running sums of certificates, (outputs, totals)."""

    @property
    def totals(self) -> Array: ...
