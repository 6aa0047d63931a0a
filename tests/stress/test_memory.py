"""No memory while a learner grows: it is as it was, or it says that it is not.

The k-th allocation of a call fails, for every learner and k; and in processes whose address space
is limited (RLIMIT_AS) whatever allocation it is. A learner that is intact goes on, and then equals
one that nothing ever happened to, to the bit.
"""

import copy
import subprocess
import sys

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.components.dictionaries import _Sampler
from oklnumba.core import cholesky
from oklnumba.core.state import NoRoom
from tests.battery import LEARNERS, SAMPLERS, contents, make, stream
from tests.stress.players import PLAYERS, N, data

GROW = {
    "NystromAWV, no atoms to spare", "NOGD with a full dictionary", "SkeGD with a full dictionary",
    "KRLS with many atoms", "Standardized KRLS", "OneVsRest", "OneVsRest, a learner a class",
    "OneVsRest of SkeGD", "OneVsRest of KONS", "MultiOutput", "Experts", "Experts that grow",
    "Experts on one dictionary", "Experts that restart", "OnlineToBatch", "KernelAWV", "KONS",
    "GrowingPKAWV", "SelfTuning",
}  # fmt: skip


class Failing:
    """The helpers by which state grows: from the k-th call from now on they fail."""

    def __init__(self, monkeypatch):
        self.left = None
        for name, module in list(sys.modules.items()):
            if name.startswith("oklnumba.") and hasattr(module, "aligned_zeros"):
                monkeypatch.setattr(module, "aligned_zeros", self.counted(module.aligned_zeros))
        monkeypatch.setattr(cholesky, "grow_factor", self.counted(cholesky.grow_factor))

    def counted(self, allocate):
        def counted(*args, **kwargs):
            if self.left is not None:
                self.left -= 1
                if self.left <= 0:
                    raise MemoryError("none left")
            return allocate(*args, **kwargs)

        return counted


def refuses(player, X, y):
    """Say whether a learner refuses to go on, in all its calls."""
    for call in (lambda: player.learn_one(X[0], y[0]), lambda: player.partial_fit(X, y)):
        with pytest.raises(RuntimeError, match=r"no longer whole.*reset\(\)"):
            call()
    with pytest.raises(RuntimeError, match="no longer whole"):
        player.predict(X[:1])
    with pytest.raises(RuntimeError, match="no longer whole"):
        copy.deepcopy(player).predict(X[:1])
    return player.reset().rounds == 0


@pytest.fixture
def failing(monkeypatch):
    return Failing(monkeypatch)


@pytest.mark.parametrize("name", PLAYERS)
def test_growth_that_fails_leaves_the_learner_intact(name, failing, tries):
    """Of a call with many rounds: those before are counted, and it goes on with the next."""
    make_one = PLAYERS[name]
    X, y = data(make_one())
    whole = make_one().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    met = 0
    for k in range(1, tries(3, 40)):
        one, start = make_one(), 20
        one.partial_fit(X[:start], y[:start])
        failing.left = k
        try:
            one.partial_fit(X[start:], y[start:])
        except MemoryError as error:
            failing.left = None
            met += 1
            assert isinstance(error, NoRoom) and "intact" in str(error)
            done = one.rounds - start
            assert f"{done} of these {N - start} rounds have been played" in str(error)
            twin = make_one().partial_fit(X[:start], y[:start])
            if done:
                twin.partial_fit(X[start : start + done], y[start : start + done])
            np.testing.assert_allclose(one.predict(X[:9]), twin.predict(X[:9]), rtol=1e-9)
            one.partial_fit(X[start + done :], y[start + done :])
        failing.left = None
        assert one.rounds == N
        if not by_blocks(one):
            assert contents(one) == contents(whole)
        np.testing.assert_allclose(one.predict(X[:9]), whole.predict(X[:9]), rtol=1e-9, atol=1e-12)
    assert met or name not in GROW


def by_blocks(player):
    """Say whether the last bits of a learner depend on where a stream is cut into calls."""
    return isinstance(player, okl.KernelAWV | okl.KONS | okl.Experts) or "KONS" in repr(player)


@pytest.mark.parametrize("name", PLAYERS)
def test_the_same_round_can_be_tried_again(name, failing, tries):
    """``learn_one`` that finds no room, again and again."""
    make_one = PLAYERS[name]
    X, y = data(make_one())
    n = tries(80, N)
    one, twin = make_one(), make_one()
    failures = 0
    for x, label in zip(X[:n], y[:n], strict=True):
        failing.left = 1 + failures % 3
        try:
            one.learn_one(x, label)
        except MemoryError as error:
            failures += 1
            failing.left = None
            if "no memory" in str(error) and "as it was" in str(error):
                one.learn_one(x, label)
            else:  # its first buffers
                assert one.rounds == 0
                one.learn_one(x, label)
        failing.left = None
        twin.learn_one(x, label)
        assert one.rounds == twin.rounds
    assert contents(one) == contents(twin)
    assert failures or name not in GROW


class Everywhere(Failing):
    """Whatever NumPy allocates for the package's own Python code."""

    def __init__(self, monkeypatch):
        self.left = None
        for name in ("empty", "zeros", "ones", "array", "concatenate", "stack", "vstack"):
            monkeypatch.setattr(np, name, self.counted(getattr(np, name)))


@pytest.mark.parametrize("name", PLAYERS)
def test_any_allocation(name, tries):
    """Not of growth alone: a learner is as it was, or goes on, or refuses to."""
    make_one = PLAYERS[name]
    X, y = data(make_one())
    whole = make_one().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    for k in range(1, tries(2, 60)):
        one = make_one().partial_fit(X[:20], y[:20])
        with pytest.MonkeyPatch.context() as patch:
            failing = Everywhere(patch)
            failing.left = k
            try:
                one.partial_fit(X[20:], y[20:])
            except MemoryError:
                pass
        if failing.left > 0:  # there were fewer
            assert k > 1 and one.rounds == N
            break
        try:
            one.predict(X[:1])
        except RuntimeError:
            assert refuses(one, X, y)
            continue
        if one.rounds < N:  # the last allocation may come after the last round
            one.partial_fit(X[one.rounds :], y[one.rounds :])
        assert one.rounds == N
        if not by_blocks(one):
            assert contents(one) == contents(whole)


@pytest.mark.parametrize("cls", SAMPLERS, ids=lambda cls: cls.__name__)
def test_samplers_are_intact_too(cls, failing, tries):
    X = np.random.default_rng(0).uniform(-1, 1, (N, 3))

    def sampler():
        return cls(okl.Gaussian(0.2))

    whole = sampler().partial_fit(X)
    met = 0
    for k in range(1, tries(6, 30)):
        one = sampler().partial_fit(X[:20])
        assert isinstance(one, _Sampler)
        failing.left = k
        try:
            one.partial_fit(X[20:])
        except MemoryError as error:
            failing.left = None
            met += 1
            seen = one._fitted()["points seen"]
            assert f"{seen - 20} of these {N - 20} points were looked at" in str(error)
            one.partial_fit(X[seen:])
        failing.left = None
        np.testing.assert_array_equal(one.indices_, whole.indices_)
        np.testing.assert_array_equal(one.probabilities_, whole.probabilities_)
        np.testing.assert_array_equal(one.transform(X[:5]), whole.transform(X[:5]))
    assert met or whole.size < 32


@pytest.mark.parametrize("name", sorted(GROW))
def test_a_run_without_memory_keeps_its_rounds(name, failing, tmp_path, tries):
    """In its checkpoint: the same run goes on from there, to the bits of one in one go."""
    one, path = PLAYERS[name](), tmp_path / "run.npz"
    X, y = data(one, 400)
    failing.left = 10**9
    expected, whole, stopped = okl.run(one, X, y), contents(one), 0
    count, failing.left = 10**9 - failing.left, None
    for k in sorted({*np.linspace(1, count, tries(4, 40)).astype(int).tolist()}):
        one.reset()
        failing.left = k
        try:
            okl.run(one, X, y, checkpoint=path)
        except MemoryError as error:
            failing.left = None
            if one.rounds:
                assert "rounds have been played, and the learner is intact" in str(error)
                kept = okl.Run.load(path)
                assert kept.rounds == one.rounds < len(y) and not kept.finished
                np.testing.assert_array_equal(kept.predictions, expected.predictions[: kept.rounds])
                stopped += 1
        failing.left = None
        got = okl.run(one.reset(), X, y, checkpoint=path)
        np.testing.assert_array_equal(got.predictions, expected.predictions)
        np.testing.assert_array_equal(got.sizes, expected.sizes)
        assert contents(one) == whole
        path.unlink()
    assert stopped or name == "KernelAWV"  # which makes room for a short run before it


def test_no_memory_at_the_start_leaves_no_data(failing):
    for cls in LEARNERS:
        one = make(cls)
        X, y = stream(one, 5)
        failing.left = 1
        try:
            one.partial_fit(X, y)
        except MemoryError:
            failing.left = None
            assert one.rounds == one.size == 0, cls
            assert one.set_params(**one.get_params(deep=False)) is one
        failing.left = None


LIMITED = """
import os, resource, sys, tempfile
import numpy as np
import oklnumba as okl
from tests.battery import contents
from tests.stress.test_memory import LIMITS

def limit_to(more):  # so many MiB more than there are
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    most = resource.RLIM_INFINITY if more is None else size + int(more * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

make_one, limit = LIMITS[sys.argv[1]], int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 3))
y = np.sign(X[:, 0] * X[:, 1] + 0.1)
make_one().partial_fit(X[:200], y[:200]).predict(X[:10])  # compiled
one = make_one()
one.partial_fit(X[:100], y[:100])
limit_to(limit)
failed = False
for start in range(100, 3900, 100):
    try:
        one.partial_fit(X[start : start + 100], y[start : start + 100])
    except MemoryError as error:
        failed = str(error)
        break
limit_to(None)
done = one.rounds
try:
    one.predict(X[:1])
except RuntimeError:
    print("refuses")
    sys.exit()
twin = make_one()
twin.partial_fit(X[:100], y[:100])
for start in range(100, done, 100):
    twin.partial_fit(X[start : min(start + 100, done)], y[start : min(start + 100, done)])
assert np.allclose(one.predict(X[:50]), twin.predict(X[:50]), rtol=1e-9, atol=1e-9)
one.partial_fit(X[done : done + 50], y[done : done + 50])
twin.partial_fit(X[done : done + 50], y[done : done + 50])
assert np.allclose(one.predict(X[:50]), twin.predict(X[:50]), rtol=1e-9, atol=1e-9)
path = os.path.join(tempfile.mkdtemp(), "one.npz")
one.save(path)
okl.load(path)
for more in (0.5, 1, 2, 4, 8, 16, 32, 64, 128):
    limit_to(more)
    try:
        again = okl.load(path)
    except MemoryError as error:
        limit_to(None)
        assert "MiB, does not fit in memory" in str(error), error
        print("too large", end=" ")
    else:
        limit_to(None)
        assert contents(again) == contents(one)
        break
os.remove(path)
print("intact" if failed else "fits")
"""

LIMITS = {
    "NystromAWV": lambda: okl.NystromAWV(okl.Gaussian(0.2), mu=0.05),
    "KRLS": lambda: okl.KRLS(okl.Gaussian(0.1), threshold=1e-3),
    "POMD": lambda: okl.POMD(okl.Gaussian(0.2)),
    "SketchedKONS": lambda: okl.SketchedKONS(okl.Gaussian(0.3), gamma=0.5),
    "ProsNKONS": lambda: okl.ProsNKONS(okl.Gaussian(0.3)),
    "KernelAWV": lambda: okl.KernelAWV(okl.Gaussian(0.3)),
    "KONS": lambda: okl.KONS(okl.Gaussian(0.3)),
    "GrowingPKAWV": lambda: okl.GrowingPKAWV(okl.TaylorFeatures(1)),
    "OneVsRest": lambda: okl.OneVsRest(LIMITS["KRLS"](), [-1, 1]),
    "Experts": lambda: okl.Experts([LIMITS["KRLS"](), LIMITS["NystromAWV"]()]),
    "OnlineToBatch": lambda: okl.OnlineToBatch(LIMITS["KRLS"](), draws=3),
}


@pytest.mark.skipif(sys.platform != "linux", reason="address space of a process, /proc")
def test_limits_of_memory(tries):
    """Processes with so many MiB more than they have; a crash would show as a signal."""
    cases = [(name, limit) for name in LIMITS for limit in (1, 3, 10, 30, 60, 90)]
    short = [("KRLS", 3)]
    found = []
    for name, limit in tries(short, cases):
        told = subprocess.run(
            [sys.executable, "-c", LIMITED, name, str(limit)], capture_output=True, text=True
        )
        assert told.returncode == 0, (name, limit, told.returncode, told.stderr[-2000:])
        found += [told.stdout.split()[-1]] + ["too large"] * ("too large" in told.stdout)
    print({what: found.count(what) for what in set(found)})
    assert set(found) <= {"intact", "refuses", "fits", "too large"}
    assert tries({"intact"}, {"intact", "too large"}) <= set(found)
