"""Factors over dictionaries, for ``health``: what they are of is made anew from the atoms."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from oklnumba.components.kernels import Kernel
from oklnumba.core.health import Part, Upper, part_of
from oklnumba.hot.primitives.dictionary import NUGGET


def span_part(
    kernel: Kernel,
    atoms: np.ndarray,
    R: np.ndarray,
    functions: Iterable[np.ndarray],
    scales: Iterable[float],
    refused: float = 0.0,
) -> Part:
    """Return the part of R' R = K + nuggets, K the kernel matrix of m atoms, (m, d).

    functions : (m,) each, one for each output, in the coordinates R^-T k; scales : of its labels;
    refused : share of the atoms that are not among these.
    """
    matrix, diagonal = Upper(R, len(atoms)), kernel.diag(atoms)

    def column(i: int) -> np.ndarray:
        found = kernel(atoms, atoms[i : i + 1])[:, 0]
        found[i] += NUGGET * diagonal[i]
        return found

    reach = float(np.sqrt(diagonal.max()))  # |R^-T k(x, atoms)| <= |k(x, .)|
    solutions = [matrix.half_solve(w) for w in functions]
    name = "the kernel matrix of the dictionary"
    return part_of(name, matrix, solutions, scales, column, reach)._replace(refused=refused)


def kors_part(
    kernel: Kernel, atoms: np.ndarray, weights: np.ndarray, C: np.ndarray, alpha: float
) -> Part:
    """Return the part of KORS's factor C' C = S K S + alpha I, S the weights of m atoms, (m, d)."""

    def column(i: int) -> np.ndarray:
        found = weights[i] * weights * kernel(atoms, atoms[i : i + 1])[:, 0]
        found[i] += alpha
        return found

    return part_of("the matrix of KORS", Upper(C, len(atoms)), column=column)
