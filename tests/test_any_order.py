"""Any order of calls on any learner, against the same learner played once from its history.

Whatever else is called in between, forecasts, copies, files, leaves no trace.
"""

import copy
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import oklnumba as okl
from tests.battery import HOLDERS, STATES, contents, make

RNG = np.random.default_rng(7)
POOL = 120
X = RNG.uniform(-1.0, 1.0, (POOL, 2))
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.1 * RNG.standard_normal(POOL) > 0.0, 1.0, -1.0)
PROBES = RNG.uniform(-1.0, 1.0, (5, 2))
MOST = 3 * POOL  # rounds of one learner; the pool repeats

WRAPPERS = {
    "OneVsRest": (lambda: okl.OneVsRest(okl.FOGD(n_frequencies=8), [-1.0, 1.0]), SIGNS),
    "OneVsRest, together": (
        lambda: okl.OneVsRest(okl.PKAWV(okl.TaylorFeatures(2)), ["no", "yes"]),
        np.where(SIGNS > 0.0, "yes", "no"),
    ),
    "MultiOutput": (lambda: okl.MultiOutput(okl.OGD()), np.column_stack([SIGNS, X[:, 0]])),
    "OnlineToBatch": (lambda: okl.OnlineToBatch(okl.KernelOGD(okl.Gaussian(1.0))), SIGNS),
}
PLAYERS = WRAPPERS | {
    param.id: ((lambda case=param.values[0]: make(case)), SIGNS) for param in STATES
}
NEEDS_DATA = {"MultiOutput", "OnlineToBatch"}  # before it they have no forecasts
# Whose last digits depend on where their stream is cut: they take blocks by BLAS (okl.run says so).
CUT = {"KernelAWV", "KernelRidge", "KONS", "OnlineNewtonStep", "ExpConcaveFTRL", "Experts"}

counts = st.integers(1, 12)
which = st.integers(0, 2)
places = st.integers(0, POOL - 1)


class Played:
    """A learner, and how its rounds were cut."""

    def __init__(self, learner, cuts=()):
        self.learner, self.cuts = learner, list(cuts)

    @property
    def rounds(self):
        return sum(self.cuts)


class Machine(RuleBasedStateMachine):
    """Rules are calls; the model is the number of rounds played, and where they were cut."""

    name = ""  # of PLAYERS

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "file.npz"
        self.made, self.labels = PLAYERS[self.name]
        self.all = [Played(self.made())]

    def rows(self, start, count):
        at = np.arange(start, start + count) % POOL
        return X[at], self.labels[at]

    def one(self, which):
        """Return one of the learners: the first, or a copy that goes on by itself."""
        return self.all[which % len(self.all)]

    def keep(self, learner, cuts):
        self.all = [*self.all, Played(learner, cuts)][-3:]

    def unchanged(self, played, call):
        """Return what a call returns, which changes nothing."""
        before = contents(played.learner)
        found = call()
        assert contents(played.learner) == before
        return found

    # ---- rounds ----

    @rule(
        which=which,
        count=counts,
        how=st.sampled_from(["one", "run", "read-only", "Fortran", "lists"]),
    )
    def play(self, which, count, how):
        played = self.one(which)
        count = 1 if how == "one" else count
        if played.rounds + count > MOST:
            return
        A, b = self.rows(played.rounds, count)
        if how == "one":
            played.learner.learn_one(A[0], b[0])
        elif how == "run":
            assert okl.run(played.learner, A, b).rounds == count
        else:
            played.learner.partial_fit(HOLDERS[how](A, None), b)
        played.cuts.append(count)

    @rule(which=which, count=counts, cut=counts)
    def run_with_checkpoint(self, which, count, cut):
        played = self.one(which)
        self.path.unlink(missing_ok=True)
        if played.rounds:
            return
        okl.run(played.learner, *self.rows(0, count), checkpoint=self.path)
        resumed = self.made()
        run = okl.run(resumed, *self.rows(count, cut), checkpoint=self.path, resume=True)
        assert run.rounds == count + cut == resumed.rounds
        played.cuts.append(count)
        self.keep(resumed, [count, cut])

    @rule(which=which)
    def reset(self, which):
        played = self.one(which)
        played.learner.reset()
        played.cuts = []

    @rule(which=which, how=st.sampled_from(["file", "pickle", "copy"]))
    def copied(self, which, how):
        played = self.one(which)
        if how == "file":
            played.learner.save(self.path, exact=True)
            learner = okl.load(self.path)
        else:
            learner = copy.deepcopy(played.learner) if how == "copy" else pickle.loads(
                pickle.dumps(played.learner))  # fmt: skip
        self.keep(learner, played.cuts)

    # ---- what leaves no trace ----

    @rule(which=which, place=places, count=counts)
    def predict(self, which, place, count):
        played = self.one(which)
        A = X[(place + np.arange(count)) % POOL]
        if self.name in NEEDS_DATA and not played.rounds:
            return
        found = np.asarray(self.unchanged(played, lambda: played.learner.predict(A)))
        alone = self.unchanged(played, lambda: [played.learner.predict_one(x) for x in A])
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, alone, rtol=1e-9, atol=1e-12)

    @rule(which=which)
    def look(self, which):
        played = self.one(which)
        learner = played.learner
        for call in (learner.health, learner.get_params, learner._repr_html_, learner.__repr__):
            self.unchanged(played, call)
        assert learner.size >= 0

    # ---- the model ----

    @invariant()
    def rounds_are_counted(self):
        assert all(played.learner.rounds == played.rounds for played in self.all)

    @rule()
    def compare(self):
        for played in self.all:
            if not played.rounds:
                continue
            twin, bulk, start = self.made(), self.made(), 0
            for count in played.cuts:
                twin.partial_fit(*self.rows(start, count))
                start += count
            found = played.learner.predict(PROBES)
            np.testing.assert_array_equal(found, twin.predict(PROBES))
            okl.run(bulk, *self.rows(0, played.rounds))
            if self.name.split("-")[0] in CUT:
                np.testing.assert_allclose(found, bulk.predict(PROBES), rtol=1e-9, atol=1e-12)
            else:
                np.testing.assert_array_equal(found, bulk.predict(PROBES))

    def teardown(self):
        try:
            self.compare()
        finally:
            self.folder.cleanup()


def play_machine(name):
    run_state_machine_as_test(
        type("MachineOfOne", (Machine,), {"name": name}),
        settings=settings(
            max_examples=2,
            stateful_step_count=25,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.filterwarnings("ignore:the (Taylor basis|kernel)")
@pytest.mark.filterwarnings("ignore:.*digits:UserWarning")
def test_any_order_of_calls_leaves_what_the_rounds_alone_leave(name):
    play_machine(name)


def test_forecasts_that_leave_a_trace_would_be_seen(monkeypatch):
    forecast = okl.FOGD._forecast

    def remember(self, X):
        self._w[0] += 1e-12
        return forecast(self, X)

    monkeypatch.setattr(okl.FOGD, "_forecast", remember)
    with pytest.raises(AssertionError):
        play_machine("FOGD")
