"""What files say that cannot be, one thing after the other: refused in words that name it."""

import io
import zipfile

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core import files
from oklnumba.core.files import read_npz, write_npz
from oklnumba.core.params import anew
from tests.battery import make, stream

GAUSSIAN = okl.Gaussian(0.5)


def saved(path, learner, rounds=40):
    """Save a learner after some rounds; return what its file holds."""
    learner.partial_fit(*stream(make(okl.POMDR), rounds)).save(path)
    return read_npz(path)


# ---- archives ----


def npy(array):
    """Return the bytes of an array in NumPy's format."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


MEMBERS = {
    "no array": ("note.txt", b"hello", "member 'note.txt' is none of ours"),
    "longer than its array": ("meta.npy", npy(np.zeros(3)) + b"x", "longer than its array"),
    "cut off": ("meta.npy", npy(np.zeros(9))[:-8], "an array of it is cut off"),
    "of a format to come": ("meta.npy", b"\x93NUMPY\x09\x00" + bytes(90), "format (9, 0)"),
    "complex": ("meta.npy", npy(np.zeros(3, complex)), "array of the type complex128"),
    "no text": ("meta.npy", npy(np.array("[1, 2]")), "its JSON data is no object"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_that_cannot_be(name, tmp_path):
    path = tmp_path / "one.npz"
    member, contents, words = MEMBERS[name]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, contents)
    with pytest.raises(ValueError, match="one.npz is not a file that oklnumba saved") as caught:
        okl.load(path)
    assert words in str(caught.value)


def test_members_that_claim_more_bytes_than_there_are(tmp_path):
    path = tmp_path / "one.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.npy", npy(np.zeros(3)))
        archive.infolist()[0].file_size = 10**12
    with pytest.raises(ValueError, match="claim more bytes than it has"):
        okl.load(path)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="is not a file that oklnumba saved"):
        okl.load(tmp_path)


def test_a_good_file_without_memory_for_it_is_no_bad_one(tmp_path, monkeypatch):
    saved(tmp_path / "one.npz", okl.OGD())

    def none_left(*_):
        raise MemoryError("none left")

    monkeypatch.setattr(files, "read_array", none_left)
    with pytest.raises(MemoryError, match=r"one.npz, a file of .* MiB, does not fit in memory"):
        okl.load(tmp_path / "one.npz")


# ---- learners ----

OGD, BOGD = okl.OGD(), okl.BOGD(GAUSSIAN, budget=5)
CLASSES, AVERAGE = okl.OneVsRest(OGD, [-1, 1]), okl.OnlineToBatch(OGD, draws=2)
# What is in the file: a learner, names of what is changed in it, what they become, and the words.
META = {
    "width": (OGD, {"width": -1}, "its state has width=-1"),
    "rounds": (OGD, {"rounds": True}, "rounds=True"),
    "rounds of nothing": (OGD, {"width": None}, "width=None and rounds=40"),
    "outputs": (OGD, {"outputs": 2}, "its state has 2 outputs a round"),
    "trouble": (OGD, {"broken": 3}, "its state has the trouble 3"),
    "no learner": (OGD, {"spec": {"class": "Linear", "params": {}}}, "which is no learner"),
    "another width": (OGD, {"width": 5}, "has the shape (3,)"),
    "coins": (BOGD, {"state": {"coins": "{}"}}, "its coins are no random state"),
    "no coins": (BOGD, {"state": {}}, "it lacks 'coins'"),
    "classes": (CLASSES, {"outputs": 3}, "its 2 learners have not 3 outputs"),
    "another round": (AVERAGE, {"seen": 41}, "a OGD in it has 40 rounds"),
    "a round that cannot be": (AVERAGE, {"seen": -1}, "its state has width=3 and seen=-1"),
    "functions": (AVERAGE, {"functions": {}}, "functions are not those of the rounds drawn"),
}
ARRAYS = {
    "type": (OGD, {"w": lambda a: a.astype("f4")}, "its 'w' is no array of float64"),
    "shape": (OGD, {"w": lambda a: a[:, None]}, "its 'w' has the shape (3, 1), which cannot be"),
    "counts": (BOGD, {"atoms": lambda a: a[:, :2]}, "its 'a' has the shape (5,)"),
    "entries": (
        BOGD,
        dict.fromkeys(["atoms", "a", "diagonal"], lambda a: np.repeat(a, 9, axis=-1)),
        "its arrays have 45 entries, more than there can be",
    ),
    "factor": (
        okl.KernelAWV(GAUSSIAN),
        {"lower": lambda a: a[:7]},
        "its factor has not the entries of 40 rows",
    ),
}


def refusal(path, meta, arrays):
    """Return why such a file is refused."""
    write_npz(path, meta, arrays)
    with pytest.raises(ValueError, match=f"{path.name} is not a file that oklnumba") as caught:
        okl.load(path)
    return str(caught.value)


@pytest.mark.parametrize("name", META)
def test_what_a_file_says_of_a_learner_that_cannot_be(name, tmp_path):
    learner, changes, words = META[name]
    meta, arrays = saved(tmp_path / "one.npz", anew(learner))
    assert meta.keys() >= changes.keys()
    assert words in refusal(tmp_path / "one.npz", meta | changes, arrays)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_a_learner_that_cannot_be(name, tmp_path):
    learner, changes, words = ARRAYS[name]
    meta, arrays = saved(tmp_path / "one.npz", anew(learner))
    for key, change in changes.items():
        arrays[f"state_{key}"] = change(arrays[f"state_{key}"])
    assert words in refusal(tmp_path / "one.npz", meta, arrays)


# ---- runs ----

RUN = {
    "seconds": ("long", "its seconds is 'long'"),
    "finished": (1, "its finished is 1"),
    "log": ({"bytes": -1}, "its log has -1 bytes"),
    "rounds": (-3, "it keeps 40 of -3 rounds"),
}


@pytest.mark.parametrize("name", RUN)
def test_what_a_file_says_of_a_run_that_cannot_be(name, tmp_path):
    path, (value, words) = tmp_path / "run.npz", RUN[name]
    okl.run(okl.OGD(), *stream(okl.OGD(), 40)).save(path)
    meta, arrays = read_npz(path)
    write_npz(path, meta | {"run": meta["run"] | {name: value}}, arrays)
    with pytest.raises(ValueError, match="run.npz is not a file that oklnumba") as caught:
        okl.Run.load(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "changes, words",
    [({"width": 0}, "its state has width=0"), ({"rounds": 39}, "its state has 39 rounds, and its")],
)
def test_a_checkpoint_whose_state_is_not_that_of_its_run(changes, words, tmp_path):
    path = tmp_path / "run.npz"
    X, y = stream(okl.OGD(), 60)
    okl.run(okl.OGD(), X[:40], y[:40], checkpoint=path)
    meta, arrays = read_npz(path)
    write_npz(path, meta | changes, arrays)
    learner = okl.OGD()
    with pytest.raises(ValueError, match="run.npz is not a file that oklnumba") as caught:
        okl.run(learner, X[40:], y[40:], checkpoint=path, resume=True)
    assert words in str(caught.value) and learner.rounds == 0
