"""Public calls with odd arguments: each ends in a value, or in an error with words, and soon."""

import numpy as np
import pytest

import oklnumba as okl
from tests.compiled import COMPILED
from tests.stress import public_calls

SHARES = 4  # of the tries, so that workers share them
only_compiled = pytest.mark.skipif(
    not COMPILED, reason="numpy warns of overflows where compiled code does not"
)


@pytest.fixture(scope="module")
def found():
    return public_calls.calls()


def test_what_is_public_is_called(found):
    names = {call.name for call in found}
    assert len(names) > 500
    assert {"run", "sweep", "PKAWV", "KORS.fit", "theory.kons_bound", "Table.pivot"} <= names


@only_compiled
@pytest.mark.parametrize("share", range(SHARES))
def test_odd_arguments_end_in_a_value_or_in_words(share, found, tries, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    public_calls.prepare(tmp_path)
    rng = np.random.default_rng(share)
    faults = []
    for _ in range(tries(100, 5000)):
        call, changed = public_calls.drawn(rng, found)
        wrong = public_calls.fault(call, changed)
        if wrong:
            faults.append(f"{call.name}({changed}): {wrong}")
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:20])


HUGE = 10**9
X = np.zeros((4, 10))
TOO_LARGE = {
    "Fourier features": lambda: okl.FourierFeatures(HUGE).transform(X),
    "Fourier features of a learner": lambda: okl.FOGD(n_frequencies=HUGE).learn_one(X[0], 1.0),
    "a factor": lambda: okl.LinearAWV().learn_one(np.zeros(1_000_000), 1.0),
    "a kernel matrix": lambda: okl.theory.log_det(
        okl.Linear(), np.broadcast_to([0.0], (1_000_000, 1)), 1.0
    ),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_what_no_memory_holds_is_refused_before_it_is_made(what):
    with public_calls.watched(), pytest.raises(MemoryError, match=r"needs [\d.]+ [TGP]iB"):
        TOO_LARGE[what]()


@only_compiled
@pytest.mark.parametrize("lam", [10**30, 10**400, 1e300, 5e-324])
def test_a_number_beyond_is_a_float_or_refused(lam):
    """A penalty of 10 ** 30 is one of 1e30; what no float holds is refused when it is set."""
    if lam == 10**400:
        with pytest.raises(ValueError, match=r"lam must be a number > 0"):
            okl.PKAWV(okl.TaylorFeatures(2), lam=lam)
        return
    learner = okl.PKAWV(okl.TaylorFeatures(2), lam=lam)
    try:
        assert np.isfinite(learner.partial_fit(X + 0.5, [1.0, -1.0, 1.0, 1.0]).predict(X)).all()
    except FloatingPointError as error:
        assert "lam" in str(error)
