"""Ranges, entries and parts of arrays, and ``_``, as passes.py has them, beside Python."""

import numba
import numpy as np
import pytest
from numba import types
from numba.core.datamodel import default_manager

from oklnumba.hot.primitives import jit, passes

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
NEAR = range(-7, 8)


@jit.hot
def counted(start, stop, step, out):
    found = 0
    for number in range(start, stop, step):
        out[found] = number
        found += 1
    return found


@jit.hot
def nested(stop, out):
    found = 0
    for i in range(stop):
        for j in range(i, stop):
            if j == 3:
                break
            out[found] = 10 * i + j
            found += 1
    return found


@pytest.mark.parametrize("step", [1, 2, 3, 7, 20, -1, -2, -3, -20])
def test_a_range_has_the_numbers_of_python(step):
    out = np.zeros(20, dtype=np.int64)
    for start in NEAR:
        for stop in NEAR:
            found = counted(start, stop, step, out)
            assert out[:found].tolist() == list(range(start, stop, step))


@compiled
def test_a_step_of_nothing_is_no_endless_loop():
    assert counted(0, 5, 0, np.zeros(20, dtype=np.int64)) == 0
    assert counted(5, 0, 0, np.zeros(20, dtype=np.int64)) == 0


def test_a_loop_in_a_loop_begins_anew():
    out = np.zeros(40, dtype=np.int64)
    found = nested(5, out)
    expected = [10 * i + j for i in range(5) for j in range(i, 5 if i > 3 else 3)]
    assert out[:found].tolist() == expected


@jit.hot
def entry(a, i):
    return a[i]


@jit.hot
def put(a, i, value):
    a[i] = value


ARRAYS = [
    np.arange(7.0),
    np.arange(7),
    np.arange(7, dtype=np.uint64),
    np.arange(30.0).reshape(5, 6),
    np.arange(24.0).reshape(2, 3, 4),
    np.asfortranarray(np.arange(30.0).reshape(5, 6)),  # these are left to numba
    np.arange(14.0)[::2],
    np.arange(7, dtype=np.float32),
    np.arange(7) > 2,
]


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}{a.flags.c_contiguous}")
def test_entries_are_those_of_numpy_from_both_ends(a):
    for place in np.ndindex(a.shape):
        for back in (0, 1):
            index = tuple(i - back * size for i, size in zip(place, a.shape, strict=True))
            index = index if len(index) > 1 else index[0]
            assert entry(a, index) == a[index]
            other = a.copy(order="A")
            expected = a.copy()
            put(other, index, 1)
            expected[index] = 1
            np.testing.assert_array_equal(other, expected)


def test_an_entry_takes_numbers_of_another_type():
    whole, real = np.zeros(3, dtype=np.int64), np.zeros(3)
    put(real, 1, 2)
    put(whole, 1, 2.75)
    assert real.tolist() == [0.0, 2.0, 0.0] and whole.tolist() == [0, 2, 0]


@jit.hot
def weigh(part, factor):
    """Return a sum that shape, stride and place of a part all show in."""
    total = 10000.0 * part.shape[0] + 1000.0 * part.size
    for i in range(part.shape[0]):
        total += factor * (i + 1.0) * part[i]
    return total


@jit.hot
def parts(a, i, j, out):
    out[0], out[1], out[2] = weigh(a[i:j], 1.0), weigh(a[i:], 1.0), weigh(a[:j], 1.0)
    out[3], out[4] = weigh(a[2:5], 1.0), weigh(a[:], 1.0)
    out[5], out[6] = weigh(a[i:j][1:], 1.0), weigh(a[-3:], 1.0)


@jit.hot
def parts_of_rows(a, k, i, j, out):
    row, some = a[k], a[i:j]
    out[0], out[1], out[2] = weigh(row, 1.0), weigh(a[k, i:j], 1.0), weigh(a[k][i:], 1.0)
    out[3] = 1.0 * some.shape[0] + 10.0 * some.shape[1] + 100.0 * some.size
    for s in range(some.shape[0]):
        out[3] += weigh(some[s], s + 1.0)


def test_parts_are_those_of_numpy_whatever_the_bounds():
    a, out, expected = np.arange(1.0, 6.0) ** 2, np.zeros(7), np.zeros(7)
    plain = getattr(weigh, "py_func", weigh)
    for i in NEAR:
        for j in NEAR:
            parts(a, i, j, out)
            pieces = a[i:j], a[i:], a[:j], a[2:5], a[:], a[i:j][1:], a[-3:]
            expected[:] = [plain(piece, 1.0) for piece in pieces]
            np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_parts_of_rows_are_those_of_numpy():
    a, out, expected = np.arange(1.0, 21.0).reshape(4, 5) ** 2, np.zeros(4), np.zeros(4)
    plain = getattr(weigh, "py_func", weigh)
    for k in range(-4, 4):
        for i in NEAR:
            for j in NEAR:
                parts_of_rows(a, k, i, j, out)
                some = a[i:j]
                expected[:3] = plain(a[k], 1.0), plain(a[k, i:j], 1.0), plain(a[k][i:], 1.0)
                expected[3] = some.shape[0] + 10.0 * some.shape[1] + 100.0 * some.size
                expected[3] += sum(plain(row, s + 1.0) for s, row in enumerate(some))
                np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_a_part_is_a_view():
    @jit.hot
    def double(a, i, j):
        part = a[i:j]
        for k in range(part.shape[0]):
            part[k] *= 2.0

    a = np.ones(6)
    double(a, 1, 4)
    assert a.tolist() == [1.0, 2.0, 2.0, 2.0, 1.0, 1.0]


@jit.hot
def second(pair, others):
    _, value = pair
    _, _, more = others
    return value + more


def test_what_nobody_reads_may_have_any_type():
    assert second((np.ones(2), 2.5), (True, np.ones((2, 2)), 3)) == 5.5


@compiled
def test_records_of_numba_have_the_fields_that_are_written():
    model = default_manager[types.Array(types.float64, 2, "C")]
    fields = ("nitems", "itemsize", "data", "shape", "strides")
    places = passes.ITEMS, passes.ITEM_SIZE, passes.DATA, passes.SHAPE, passes.STRIDES
    assert tuple(map(model.get_field_position, fields)) == places and model.field_count == 7
    model = default_manager[types.range_iter64_type]
    assert [model.get_field_position(name) for name in ("iter", "stop", "step")] == [0, 1, 2]
    assert model.field_count == 4
    model = default_manager[passes.NEXT]
    assert [model.get_field_position(name) for name in ("first", "second")] == [0, 1]


@compiled
@pytest.mark.skipif(bool(numba.config.BOUNDSCHECK), reason="bounds are checked by numba's own code")
def test_code_is_less_than_half_of_numbas(monkeypatch):
    def lines_of(lower):
        written = []
        whole = passes.Lower.lower_normal_function

        def note(self, descriptor):
            whole(self, descriptor)
            written.append(len(str(self.module).splitlines()))

        monkeypatch.setattr(lower, "lower_normal_function", note, raising=False)
        monkeypatch.setattr(passes.ShortLowering, "lowering_class", lower)
        monkeypatch.setattr(jit, "STAMP", "")  # nothing is cached

        @jit.hot
        def summed(a, m, n):
            total = 0.0
            for i in range(m, n):
                part = a[i:n]
                for j in range(part.shape[0]):
                    total += part[j]
            return total

        assert summed(np.arange(6.0), 1, 4) == 1 + 2 + 3 + 2 + 3 + 3
        return written[0]

    assert lines_of(passes.ShortLower) < 0.5 * lines_of(passes.Lower)
