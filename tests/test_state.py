"""Arrays of the state: padded rows, room that doubles, and what of them is in files."""

import mmap
from pathlib import Path

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.arrays import APART, aligned_zeros, free_pages, zero_pages
from oklnumba.learners import kons
from oklnumba.learners.base.traits import Traits
from tests.checks import arrays, one_by_one

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def test_padding_is_not_saved(tmp_path):
    learner = okl.LinearAWV()
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (30, 512)), rng.choice([-1.0, 1.0], 30)
    learner.partial_fit(X[:20], y[:20]).save(tmp_path / "awv.npz")
    assert arrays(learner)["U"].shape == (512 * 511 // 2,)  # without zeros and the diagonal
    again = okl.load(tmp_path / "awv.npz")
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))
    for one in (learner, again):
        one.partial_fit(X[20:], y[20:])
    np.testing.assert_array_equal(again.w, learner.w)


@pytest.mark.parametrize("d", [590, 640])  # few rounds a pass, and many
def test_rounds_a_pass_change_no_bit(d):
    rng = np.random.default_rng(d)
    X, y = rng.uniform(-1, 1, (100, d)), rng.choice([-1.0, 1.0], 100)
    run = okl.run(okl.LinearAWV(), X, y)
    learner = okl.LinearAWV()
    by_hand = one_by_one(learner, X, y)
    parts = okl.LinearAWV()
    for start in range(0, 100, 7):
        parts.partial_fit(X[start : start + 7], y[start : start + 7])
    np.testing.assert_array_equal(arrays(parts)["U"], arrays(learner)["U"])
    np.testing.assert_array_equal(parts.predict(X), learner.predict(X))
    np.testing.assert_allclose(by_hand, run.predictions, rtol=1e-12, atol=1e-15)


def test_blocks_of_kons_that_double_find_room_and_start_where_they_would(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 3)), rng.uniform(-0.5, 0.5, 300)
    expected = okl.run(okl.KONS(okl.Gaussian(1.0)), X, y)
    for name, value in {"BLOCK": 8, "LARGE_BLOCK": 16, "LARGE": 64}.items():
        monkeypatch.setattr(kons, name, value)
    monkeypatch.setattr(okl.KONS, "_traits", Traits(run_rows=16, block_rows=16))
    whole = okl.run(okl.KONS(okl.Gaussian(1.0)), X, y)
    np.testing.assert_allclose(whole.predictions, expected.predictions, rtol=1e-9, atol=1e-12)
    learner = okl.KONS(okl.Gaussian(1.0))
    parts = [okl.run(learner, X[a:b], y[a:b]) for a, b in ((0, 48), (48, 160), (160, 300))]
    joined = np.concatenate([part.predictions for part in parts])
    np.testing.assert_array_equal(joined, whole.predictions)
    assert learner.size == 300


@pytest.mark.parametrize("make", [aligned_zeros, zero_pages])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (500,)])
def test_arrays_lie_apart(shape, make):
    array = make(*shape)
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    before = (array.ctypes.data - whole.ctypes.data) // 8
    assert array.ctypes.data % 64 == 0 and before >= APART
    assert whole.size - before - array.size >= APART
    assert array.shape == shape and not array.any()


@pytest.mark.skipif(
    not HUGE_PAGES.exists() or "[always]" in HUGE_PAGES.read_text(),
    reason="needs a Linux that gives pages of 2 MB only where it is asked",
)
def test_pages_that_nobody_writes_take_no_memory():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    array = zero_pages(64, 2**17)  # 64 MB
    array[::8, :100] = 1.0
    assert resident() - before < 2**20
    assert array.sum() == 800.0


def test_pages_of_a_part_are_freed_and_no_others():
    array = zero_pages(3, 40, 72)
    array[:] = 1.0
    free_pages(array[1])
    assert array[0].all() and array[2].all()
    if hasattr(mmap, "MADV_DONTNEED"):
        assert np.count_nonzero(array[1]) * 8 < 2 * mmap.PAGESIZE
    free_pages(aligned_zeros(3, 4)[1])  # no pages of its own
