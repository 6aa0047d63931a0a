"""The U' D U factor against dense matrices, and packed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from oklnumba.core.arrays import count_lines, unpack
from oklnumba.hot.primitives.udu import NO_DISCOUNT, factor_and_solve, factor_rounds, solve_rounds


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 9, 12])
@pytest.mark.parametrize("r", [8, 16, 40])
def test_solving_rounds_changes_only_the_rounds(count, r):
    rng = np.random.default_rng(r)
    U = np.triu(rng.standard_normal((r, r)), 1) / 3 + np.eye(r)
    rounds = rng.standard_normal((12, r))
    before = U.copy(), rounds.copy()
    solve_rounds(U, rounds, count, r)
    expected = np.linalg.solve(U.T, before[1][:count].T).T
    assert_allclose(rounds[:count], expected, rtol=1e-9, atol=1e-11)
    assert_array_equal(rounds[count:], before[1][count:])
    assert_array_equal(U, before[0])


@pytest.mark.parametrize("r", [8, 40, 160])
def test_rounds_that_are_only_solved_share_a_pass_with_those_that_are_added(r):
    rng = np.random.default_rng(r)
    rounds, learns = rng.standard_normal((12, r)), rng.integers(0.0, 2.0, 12)
    found = []
    for cuts in ([12], [3] * 4, [2, 5, 1, 4], [1] * 12):
        U, inv_d, betas, p, a = (
            np.eye(r),
            np.ones(r),
            np.zeros((12, r)),
            rounds.copy(),
            learns + 0.0,
        )
        for start, count in zip(np.cumsum([0, *cuts[:-1]]), cuts, strict=True):
            some = slice(start, start + count)
            factor_rounds(U, inv_d, NO_DISCOUNT, p[some], betas[some], a[some], count, r)
        found.append((U, inv_d, betas, p, a))
    for whole, *others in zip(*found, strict=True):
        for other in others:
            assert_array_equal(other, whole)
    for t in range(12):
        A = np.eye(r) + (rounds[:t].T * learns[:t]) @ rounds[:t]
        L = np.linalg.cholesky(A)
        assert_allclose(found[0][3][t], np.linalg.solve(L / L.diagonal(), rounds[t]), atol=1e-11)
        if not learns[t]:
            assert_allclose(found[0][2][t], 1 / L.diagonal() ** 2, rtol=1e-11)
    assert_array_equal(found[0][4] > 1.0, learns == 1.0)


@pytest.mark.parametrize(("cap", "r"), [(8, 8), (16, 8), (16, 16), (40, 40), (72, 64), (120, 112)])
def test_a_packed_factor_has_the_bits_of_a_square_one(cap, r):
    shapes, results = ((cap, cap), (count_lines(cap), cap)), []
    for shape in shapes:
        rng = np.random.default_rng(cap)
        U, inv_d, beta = np.zeros(shape), np.ones(cap), np.zeros((12, cap))
        for count in (1, 12, 3, 1):
            rounds = np.zeros((12, cap))
            rounds[:, :r] = rng.standard_normal((12, r))
            factor_rounds(U, inv_d, NO_DISCOUNT, rounds, beta, np.ones(12), count, r)
        z, points = rounds[1].copy(), rounds[2:8].copy()
        factor_and_solve(U, inv_d, NO_DISCOUNT, rounds[0].copy(), beta[0], z, r)
        solve_rounds(U, points, 6, r)
        results.append([unpack(U, r), inv_d, beta, rounds, z, points])
    for packed, square in zip(*results, strict=True):
        assert_array_equal(packed, square)
    assert np.abs(results[0][0]).sum() > r
