"""The lemmas of the appendix of Zhang 2019 (oco Lemmas 7 to 10), by themselves.

Each on sequences that hypothesis draws, with zeros, repeats and jumps over many orders of
magnitude, and with a control: the constant is the least one, or the printed form fails.
"""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.checks import COMPILED

COUNT = 200 if COMPILED else 40
ROUNDING = 1 + 1e-9
sizes = st.sampled_from([0.0, 0.0, 1e-6, 1e-3, 0.5, 1.0, 1.0, 2.0, 1e3, 1e6])
first = st.sampled_from([1e-6, 0.5, 1.0, 1e3])
geometric = st.builds(lambda a, rate, n: a * rate ** np.arange(n), first,
                      st.sampled_from([0.1, 0.5, 1.0, 1.5, 8.0]), st.integers(1, 30))  # fmt: skip
drawn = st.builds(lambda a, more: np.array([a, *more]), first, st.lists(sizes, max_size=40))
numbers = st.one_of(geometric, drawn)  # a_1 > 0


@settings(max_examples=COUNT)
@given(a=numbers)
@example(a=np.ones(1))
@example(a=np.ones(1000))
def test_lemmas_7_and_9_with_the_one_of_errata_50(a):
    A = np.cumsum(a)
    assert (a / np.sqrt(A)).sum() <= 2 * np.sqrt(A[-1]) * ROUNDING
    assert (a / A).sum() <= (1 + np.log(A[-1] / a[0])) * ROUNDING
    assert (a[1:] / A[1:]).sum() <= np.log(A[-1] / a[0]) * ROUNDING + 1e-12  # from the second on


def test_the_constants_of_lemmas_7_and_9_cannot_be_lowered():
    """Equal terms come as near to 2 as one likes; one term, or a jump, to the 1 of Lemma 9."""
    a = np.ones(100_000)
    A = np.cumsum(a)
    assert (a / np.sqrt(A)).sum() > 1.99 * np.sqrt(A[-1])
    small = np.full(1000, 1e-3)  # a_1 = 1, then small ones: a sum of log(A_T / A_1) and the first
    A = np.cumsum([1.0, *small])
    assert np.sum([1.0, *small] / A) > 0.999 * (1 + np.log(A[-1]))
    for printed in ([1.0], [1.0, 0.0], [1.0, 1.0]):  # as printed the lemma is false
        A = np.cumsum(printed)
        assert np.sum(printed / A) > np.log(A[-1] / A[0]) + 0.5


# ---- matrices ----


@st.composite
def matrices(draw):
    """Draw positive semi-definite M_1, ..., M_T, (T, d, d): rank one, full, zero, repeated."""
    d, seed = draw(st.integers(1, 4)), draw(st.integers(0, 2**32 - 1))
    rng, found = np.random.default_rng(seed), []
    for size in draw(st.lists(sizes, min_size=1, max_size=15)):
        rank = int(rng.integers(1, d + 1))
        V = rng.standard_normal((d, rank)) if rng.random() < 0.7 else np.eye(d)[:, :rank]
        found += [size * V @ V.T] * int(rng.integers(1, 4))
    return np.array(found)


def root(N, power):
    values, vectors = np.linalg.eigh(N)
    return vectors * np.maximum(values, values[-1] * 1e-15) ** power @ vectors.T


@settings(max_examples=COUNT)
@given(M=matrices(), scale=st.sampled_from([1e-4, 1.0, 1e4]))
def test_lemma_8(M, scale):
    M = np.concatenate([scale * np.eye(M.shape[1])[None], M])  # M_1 > 0
    N = np.cumsum(M, axis=0)
    total = sum(np.trace(root(Nt, -0.5) @ Mt) for Nt, Mt in zip(N, M, strict=True))
    assert total <= 2 * np.trace(root(N[-1], 0.5)) * ROUNDING


@settings(max_examples=COUNT)
@given(M=matrices(), scale=st.sampled_from([1e-4, 1.0, 1e4]))
def test_lemma_10(M, scale):
    N0 = scale * np.eye(M.shape[1])
    N = N0 + np.cumsum(M, axis=0)
    total = sum(np.trace(np.linalg.solve(Nt, Mt)) for Nt, Mt in zip(N, M, strict=True))
    bound = np.linalg.slogdet(N[-1])[1] - np.linalg.slogdet(N0)[1]
    assert total <= bound * ROUNDING + 1e-9


def test_the_constants_of_lemmas_8_and_10_cannot_be_lowered():
    M = np.tile(np.eye(2), (20_000, 1, 1))
    M[::2, 0, 0] = M[1::2, 1, 1] = 0.0
    N = np.eye(2) * 1e-2 + np.cumsum(M, axis=0)
    diagonal, step = np.diagonal(N, axis1=1, axis2=2), np.diagonal(M, axis1=1, axis2=2)
    assert (step / np.sqrt(diagonal)).sum() > 1.97 * np.sqrt(diagonal[-1]).sum()
    slow = 1e-3 * M[:4000]
    N = np.eye(2) + np.cumsum(slow, axis=0)
    total = sum(np.trace(np.linalg.solve(Nt, Mt)) for Nt, Mt in zip(N, slow, strict=True))
    assert total > 0.999 * np.linalg.slogdet(N[-1])[1]
