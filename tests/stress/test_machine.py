"""Any order of calls on any learner, against the same learner played once from its history.

Whatever else is called in between, forecasts, copies, files, bad input, leaves no trace.
"""

import copy
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import oklnumba as okl
from tests.battery import BAD_ARRAYS, BAD_X, HOLDERS, LEARNERS, WIDTHS, contents, make

RNG = np.random.default_rng(7)
POOL, D = 120, 2
X = RNG.uniform(-1.0, 1.0, (POOL, D))
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.1 * RNG.standard_normal(POOL) > 0.0, 1.0, -1.0)
PROBES = RNG.uniform(-1.0, 1.0, (5, D))
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
CASES = {cls.__name__: ((lambda cls=cls: make(cls)), SIGNS) for cls in LEARNERS} | WRAPPERS
# Whose last digits hang on where their stream is cut: they take blocks by BLAS (okl.run says so).
NEEDS_DATA = {"MultiOutput", "OnlineToBatch"}  # before it they have no forecasts
CUT = {"KernelAWV", "KernelRidge", "KONS", "OnlineNewtonStep", "ExpConcaveFTRL", "Experts"}

counts = st.integers(1, 12)
places = st.integers(0, POOL - 1)
bad_X = st.sampled_from([*BAD_X.values(), *WIDTHS.values()])
bad_y = st.sampled_from([change for name, change in BAD_ARRAYS.items() if name != "bytes"])
BAD_PARAMETERS = {
    "nonsense": 1, "lam": -1.0, "eta": float("nan"), "kernel": None, "loss": "none", "seed": -1,
    "radius": 1j, "budget": 10**30, "learner": 3, "features": "x", "discount": 2.0,
}  # fmt: skip


class Played:
    """A learner, and how its rounds were cut."""

    def __init__(self, learner, cuts=()):
        self.learner, self.cuts = learner, list(cuts)

    @property
    def rounds(self):
        return sum(self.cuts)


def state(learner):
    """Return all that a learner holds, as something that can be compared."""
    return contents(learner)


def asked(learner):
    return np.asarray(learner.predict(PROBES))


def twin(machine, cuts):
    """Return a fresh learner that has played the history, cut so."""
    learner, start = machine.made(), 0
    for count in cuts:
        learner.partial_fit(*machine.rows(start, count))
        start += count
    return learner


class Machine(RuleBasedStateMachine):
    """Rules are calls; the model is the number of rounds played, and where they were cut."""

    name = ""  # of CASES
    calls = 0

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.made, self.labels = CASES[self.name]
        self.all, self.files = [Played(self.made())], 0

    def rows(self, start, count):
        at = np.arange(start, start + count) % POOL
        return X[at], self.labels[at]

    def one(self, which):
        """Return one of the learners: the first, or a copy that goes on by itself."""
        type(self).calls += 1
        return self.all[which % len(self.all)]

    def path(self):
        self.files += 1
        return Path(self.folder.name) / f"{self.files}.npz"

    def unchanged(self, played, call, *errors):
        """Make a call that raises one of the errors, or none where there are none to be had."""
        before, rounds = state(played.learner), played.learner.rounds
        if errors:
            with pytest.raises(errors) as caught:
                call()
            assert len(str(caught.value)) > 20, "an error without words"
        else:
            call()
        assert state(played.learner) == before
        assert played.learner.rounds == rounds

    which = st.integers(0, 2)

    # ---- rounds ----

    @rule(which=which, count=counts, holder=st.sampled_from(["read-only", "Fortran", "lists"]))
    def partial_fit(self, which, count, holder):
        played = self.one(which)
        if played.rounds + count > MOST:
            return
        A, b = self.rows(played.rounds, count)
        played.learner.partial_fit(HOLDERS[holder](A, None), b)
        played.cuts.append(count)

    @rule(which=which)
    def learn_one(self, which):
        played = self.one(which)
        if played.rounds >= MOST:
            return
        (x,), (y,) = self.rows(played.rounds, 1)
        played.learner.learn_one(x, y)
        played.cuts.append(1)

    @rule(which=which, count=counts)
    def run(self, which, count):
        played = self.one(which)
        if played.rounds + count > MOST:
            return
        run = okl.run(played.learner, *self.rows(played.rounds, count))
        assert run.rounds == count and run.finished
        played.cuts.append(count)

    @rule(which=which, count=counts, cut=counts)
    def run_with_checkpoint(self, which, count, cut):
        played, path = self.one(which), self.path()
        if played.rounds or played.rounds + count + cut > MOST:
            return
        A, b = self.rows(0, count)
        okl.run(played.learner, A, b, checkpoint=path)
        more = self.rows(count, cut)
        resumed = self.made()
        run = okl.run(resumed, *more, checkpoint=path, resume=True)
        assert run.rounds == count + cut == resumed.rounds
        with pytest.raises(ValueError, match="data"):
            okl.run(self.made(), -A, b, checkpoint=path)
        played.cuts.append(count)
        self.keep(Played(resumed, [count, cut]))

    @rule(which=which)
    def reset(self, which):
        played = self.one(which)
        played.learner.reset()
        played.cuts = []

    # ---- copies ----

    def keep(self, played):
        self.all = [*self.all, played][-3:]

    @rule(which=which)
    def save_and_load(self, which):
        played, path = self.one(which), self.path()
        played.learner.save(path)
        self.keep(Played(okl.load(path), played.cuts))

    @rule(which=which)
    def pickled(self, which):
        played = self.one(which)
        self.keep(Played(pickle.loads(pickle.dumps(played.learner)), played.cuts))

    @rule(which=which)
    def copied(self, which):
        played = self.one(which)
        self.keep(Played(copy.deepcopy(played.learner), played.cuts))

    # ---- what leaves no trace ----

    @rule(which=which, place=places, count=counts)
    def predict(self, which, place, count):
        played = self.one(which)
        A = X[(place + np.arange(count)) % POOL]
        found = []
        if self.name in NEEDS_DATA and not played.rounds:
            self.unchanged(played, lambda: played.learner.predict(A), ValueError)
            return
        self.unchanged(played, lambda: found.append(played.learner.predict(A)))
        if not hasattr(played.learner, "predict_one"):
            return
        alone = np.array([played.learner.predict_one(x) for x in A])
        assert len(found[0]) == count
        if np.asarray(found[0]).dtype.kind == "f":
            np.testing.assert_allclose(found[0], alone, rtol=1e-9, atol=1e-12)

    @rule(which=which)
    def look(self, which):
        played = self.one(which)
        learner = played.learner
        for call in (learner.health, learner.get_params, learner._repr_html_, learner.__repr__):
            self.unchanged(played, call)
        assert learner.size >= 0

    @rule(which=which, place=places, bad=bad_X, with_one=st.booleans(), play=st.booleans())
    def bad_inputs(self, which, place, bad, with_one, play):
        played = self.one(which)
        A, b = self.rows(place, 4)
        learner = played.learner
        if with_one and hasattr(learner, "predict_one"):
            x = bad(A[0].copy()) if bad not in (BAD_X["1-D"], BAD_X["no columns"]) else A
            calls = [lambda: learner.predict_one(x), lambda: learner.learn_one(x, b[0])]
        else:
            calls = [lambda: learner.predict(bad(A)), lambda: learner.partial_fit(bad(A), b)]
            calls[1] = (lambda: okl.run(learner, bad(A), b)) if play else calls[1]
        if bad in WIDTHS.values() and not played.rounds:
            return  # any width is good then
        for call in calls:
            self.unchanged(played, call, ValueError, TypeError)

    @rule(which=which, place=places, bad=bad_y, play=st.booleans())
    def bad_labels(self, which, place, bad, play):
        played = self.one(which)
        A, b = self.rows(place, 4)
        wrong = bad(np.array([1.0, -1.0, 1.0, 1.0])) if b.dtype.kind == "U" else bad(b)
        learner = played.learner
        call = (lambda: okl.run(learner, A, wrong)) if play else (
            lambda: learner.partial_fit(A, wrong))  # fmt: skip
        self.unchanged(played, call, ValueError, TypeError)

    @rule(which=which, name=st.sampled_from(list(BAD_PARAMETERS)), assign=st.booleans())
    def bad_parameters(self, which, name, assign):
        played = self.one(which)
        learner, value = played.learner, BAD_PARAMETERS[name]
        known = name in learner.get_params(deep=False)
        if assign and not (known and played.rounds):
            return  # what an object without data is assigned is checked by its first round
        if assign:
            self.unchanged(played, lambda: setattr(learner, name, value), ValueError)
        else:
            self.unchanged(played, lambda: learner.set_params(**{name: value}), ValueError)

    @rule(which=which)
    def the_same_parameters(self, which):
        played = self.one(which)
        params = played.learner.get_params(deep=False)
        refused = (ValueError,) if played.rounds else ()
        self.unchanged(played, lambda: played.learner.set_params(**params), *refused)

    # ---- the model ----

    @invariant()
    def rounds_are_counted(self):
        for played in self.all:
            assert played.learner.rounds == played.rounds

    @precondition(lambda self: any(played.rounds for played in self.all))
    @rule()
    def compare(self):
        for played in self.all:
            if not played.rounds:
                continue
            got, again = asked(played.learner), asked(twin(self, played.cuts))
            np.testing.assert_array_equal(got, again)
            bulk = self.made()
            okl.run(bulk, *self.rows(0, played.rounds))
            if self.name in CUT:
                np.testing.assert_allclose(got, asked(bulk), rtol=1e-9, atol=1e-12)
            else:
                np.testing.assert_array_equal(got, asked(bulk))

    def teardown(self):
        try:
            self.compare()
        finally:
            self.folder.cleanup()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:the (Taylor basis|kernel)")
@pytest.mark.filterwarnings("ignore:.*digits:UserWarning")
def test_any_order_of_calls_leaves_what_the_rounds_alone_leave(name, tries):
    machine = type(f"MachineOf{name}", (Machine,), {"name": name, "calls": 0})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=tries(2, 12),
            stateful_step_count=tries(20, 50),
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert machine.calls >= tries(10, 400)
