"""Sweeps on two processes of Dask or joblib: the table of one, of data that travel once."""

import os
import tempfile

import joblib
import numpy as np
import pytest

import oklnumba as okl

distributed = pytest.importorskip("distributed", reason="needs the extra dask")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 2))
Y = np.where(X[:, 0] * X[:, 1] > 0.0, 1.0, -1.0)
KERNEL = okl.Gaussian(0.7)


def play():
    return okl.sweep(
        {"FOGD": okl.FOGD(n_frequencies=20), "exact": okl.KernelAWV(KERNEL)},
        {"curved": (X, Y), "straight": (X, np.sign(X[:, 0]))},
        permutations=2, kernel=KERNEL, regret=1.0, measure=name_process,
    )  # fmt: skip


def play_sizes():
    learners = {"NystromAWV": okl.NystromAWV(KERNEL), "exact": okl.KernelAWV(KERNEL)}
    return okl.regret_vs_size(learners, X, Y, KERNEL, lam=1.0, seeds=2, sizes=[10])


def name_process(learner, run):
    return {"process": os.getpid()}


@pytest.fixture(scope="module")
def cluster():
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **how) as made, distributed.Client(made):
        yield


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask's own start
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_data_travel_once(cluster, backend, tmp_path):
    """In five runs: pickled once; Dask's workers have it once each, joblib's map one file."""
    pickled = []

    class Blocks:
        def __call__(self):
            return iter([(X, Y)])

        def __reduce__(self):
            pickled.append(1)
            return arrive, (str(tmp_path), Blocks)

    def arrive(folder, kind):
        tempfile.mkstemp(dir=folder)
        return kind()

    with joblib.parallel_config(backend=backend, n_jobs=2):
        table = okl.sweep(okl.LinearAWV(), Blocks(), 5, measure=name_process)
    assert not any(table["error"]) and os.getpid() not in set(table["process"])
    assert len(pickled) == 1
    assert len(os.listdir(tmp_path)) <= (2 if backend == "dask" else 5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask's own start
def test_a_cluster_gives_the_table_of_one_process(cluster):
    here, sizes_here = play(), play_sizes()
    with joblib.parallel_config(backend="dask"):
        there, sizes_there = play(), play_sizes()
    assert not any(there["error"]) and set(here["process"]) == {os.getpid()}
    assert os.getpid() not in set(there["process"])
    for name in ("mean_loss", "mistakes", "regret", "size", "total_loss"):
        np.testing.assert_array_equal(np.array(there[name], float), np.array(here[name], float))
    there, here = (np.array(one["regret"], float) for one in (sizes_there, sizes_here))
    np.testing.assert_allclose(there, here, rtol=1e-9)


def test_a_frame_of_dask_is_lazy():
    frames = pytest.importorskip("dask.dataframe", reason="needs pandas")
    pandas = pytest.importorskip("pandas")
    whole = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
    lazy = frames.from_pandas(whole, npartitions=2)
    with pytest.raises(ValueError, match=r"X is a lazy frame; pass X.compute\(\)"):
        okl.run(okl.LinearRidge(), lazy[["a", "b"]], lazy.y)
    run = okl.run(okl.LinearRidge(), okl.stream(lazy, label="y"))
    assert (run.predictions == okl.run(okl.LinearRidge(), X, Y).predictions).all()
