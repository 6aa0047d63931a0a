"""Files that are damaged, cut off, or of another kind are one ValueError that names the file."""

import copy
import io
import os
import shutil

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core import files
from oklnumba.core.files import FORMAT, pack, read_npz, unpack, write_npz
from tests.battery import make, stream
from tests.checks import ROOT, raises, refused, troubled

X, Y = stream(make(okl.LinearAWV), 40)


@pytest.fixture
def saved(tmp_path):
    """Return the path of a learner with a dictionary and coins."""
    path = tmp_path / "learner.npz"
    make(okl.BOGD, budget=5).partial_fit(*stream(make(okl.BOGD), 40)).save(path)
    return path


def refusal(path):
    with pytest.raises(ValueError, match=f"{path.name} is not a file that oklnumba saved") as error:
        okl.load(path)
    return str(error.value)


def test_what_another_process_saved_is_not_replaced_without_a_word(tmp_path):
    path, other = tmp_path / "model.npz", tmp_path / "other.npz"
    model = okl.OGD().learn_one([1.0], 1.0)
    okl.OGD().partial_fit([[1.0]] * 3, [1.0] * 3).save(other)
    for _ in range(2):
        model.save(path)
    shutil.copy(other, path)
    with pytest.warns(UserWarning, match=r"another process wrote .*model.npz \(3 rounds\)") as told:
        model.save(path)
    assert told[0].filename == __file__
    shutil.copy(other, path)
    okl.load(path).save(path)  # it knows what it replaces


def test_any_damaged_byte_is_noticed(saved):
    content = saved.read_bytes()
    good = okl.load(saved)
    X = stream(good, 3)[0]
    for at in range(0, len(content), max(len(content) // 150, 1)):
        saved.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
        try:
            loaded = okl.load(saved)
        except ValueError as error:
            assert saved.name in str(error)
        else:  # a byte that means nothing, such as a date in the archive
            np.testing.assert_array_equal(loaded.predict(X), good.predict(X))
    for length in (0, 1, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:length])
        refusal(saved)


CHANGES = {
    "w of another shape": (
        {"state_alpha": np.zeros(4)},
        {},
        "array 'alpha' has shape (4,); expected (5,)",
    ),
    "another type": ({"state_alpha": np.zeros(5, int)}, {}, "expected (5,), float64"),
    "no coins": ({}, {"state": {}}, "it lacks 'coins'"),
    "no learner": ({}, {"spec": {"class": "Linear", "params": {}}}, "expected a learner"),
    "bad parameter": (
        {},
        {"spec": {"class": "OGD", "params": {"eta": -1.0}}},
        "eta must be a number > 0",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_does_not_fit_is_refused(saved, name):
    new_arrays, new_meta, words = CHANGES[name]
    meta, arrays = read_npz(saved)
    write_npz(saved, meta | new_meta, arrays | new_arrays)
    assert words in refusal(saved)


FORMATS = ROOT / "tests" / "formats"  # a file of each released format, and of the present one
MEMBERS = {okl.PKAWV: {}, okl.KRLS: {}, okl.NystromAWV: {}, okl.BOGD: {"loss": "squared"},
           okl.FOGD: {"loss": "squared", "n_frequencies": 5}}  # fmt: skip


def write_format():
    """Write a learner and its run in the present format, and some of its forecasts."""
    members = [make(cls, **given) for cls, given in MEMBERS.items()]
    learner = okl.Experts([okl.Intervals(one) for one in members], B=None)
    okl.run(learner, X, Y, checkpoint=FORMATS / f"{FORMAT}.npz", record=10)
    np.savetxt(FORMATS / f"{FORMAT}.txt", learner.predict(X[:5]))


@pytest.mark.parametrize("number", sorted(int(one.stem) for one in FORMATS.glob("*.npz")))
def test_files_of_each_format_load_or_are_called_so(number):
    path = FORMATS / f"{number}.npz"
    if number != FORMAT:
        refused(f"saved by an earlier oklnumba, in format {number}", okl.load, path)
        return
    forecasts = okl.load(path).predict(X[:5])
    np.testing.assert_allclose(forecasts, np.loadtxt(path.with_suffix(".txt")), rtol=1e-9)
    assert okl.Run.load(path).rounds == len(X)


def test_the_present_format_has_a_file_and_other_versions_are_called_so(saved):
    assert (FORMATS / f"{FORMAT}.npz").exists(), "run tests.test_files.write_format"
    meta, arrays = read_npz(saved)
    for number, words in ((FORMAT + 1, "a later .* update"), (FORMAT - 1, "an earlier .* load it")):
        write_npz(saved, meta | {"format": number}, arrays)
        refused(f"{saved.name} was saved by {words}", okl.load, saved)


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "|i1", "<i8", "|b1", "<U3", "<M8[us]"])
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5,), (2000, 3), (4, 1, 2000)])
def test_arrays_are_the_same_after_they_are_packed(kind, shape):
    array = (
        np.random.default_rng(0).integers(0, 9, shape).astype("<M8[us]" if "M" in kind else kind)
    )
    for one in (array, array.T):
        again = unpack(io.BytesIO(b"".join(pack(one))).read, one.dtype.str, list(one.shape))
        assert again.dtype == one.dtype and again.shape == one.shape
        np.testing.assert_array_equal(again, one)


def test_numbers_that_are_like_each_other_take_less_room_in_files():
    rng = np.random.default_rng(0)
    factor, table = rng.normal(size=10**5), np.column_stack([np.arange(10**5.0), rng.random(10**5)])
    assert sum(map(len, pack(factor))) < 0.93 * factor.nbytes
    assert sum(map(len, pack(table))) < 0.65 * table.nbytes


def test_atoms_that_are_past_inputs_are_saved_as_their_rows(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(300, 3)), np.ones(300)
    model = okl.SelfTuning(budget=20).partial_fit(X, X[:, 0] * y)
    model.save(tmp_path / "model.npz")
    arrays = read_npz(tmp_path / "model.npz")[1]
    atoms = [one for name, one in arrays.items() if name.endswith("_atoms")]
    assert len(atoms) > 4 and sum(one.dtype.kind == "i" for one in atoms) >= len(atoms) - 1
    for again in (okl.load(tmp_path / "model.npz"), copy.deepcopy(model)):
        for one in (model, again):
            one.partial_fit(X[::-1], y)
        for one, group in zip(again._ensemble.groups, model._ensemble.groups, strict=True):
            np.testing.assert_array_equal(one._state.atoms, group._state.atoms)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        model = okl.SelfTuning(budget=20).partial_fit(X, X[:, 0] * y)


def test_what_is_no_file_of_ours_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    refusal(tmp_path / "text.npz")
    np.savez(tmp_path / "pickle.npz", meta=np.array([{}], dtype=object))
    refusal(tmp_path / "pickle.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    assert "it lacks" in refusal(tmp_path / "other.npz")
    (tmp_path / "folder").mkdir()
    refusal(tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        okl.load(tmp_path / "nothing.npz")


# ---- what is written, and where ----

WRITERS = {
    "learner": lambda path: okl.OGD().save(path),
    "run": lambda path: okl.run(okl.OGD(), X, Y).save(path),
    "checkpoint": lambda path: okl.run(okl.OGD(), X, Y, checkpoint=path),
    "table": lambda path: okl.sweep(okl.OGD(), (X, Y)).save(path),
    "csv": lambda path: okl.sweep(okl.OGD(), (X, Y)).to_csv(path),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "mounted", "file"])
def test_a_file_is_written_as_an_editor_would(writer, kind, tmp_path, monkeypatch):
    path, other, synced = tmp_path / "saved", tmp_path / "other", []
    WRITERS[writer](path)
    path.chmod(0o600)
    if writer != "checkpoint":  # which goes on from what is there
        path.write_bytes(bytes(10**6))  # longer than what is written
    if "link" in kind:
        (other.hardlink_to if kind == "hard link" else other.symlink_to)(path)
    else:
        path.rename(other)
    if kind == "dangling link":
        path.unlink()
    fsync, replace = os.fsync, os.replace

    def rename(source, target):
        assert synced  # so that a name never leads to half a file, even after a loss of power
        if kind == "mounted":  # a single file in a container
            raise OSError(16, "Device or resource busy")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", lambda file: synced.append(fsync(file)))
    monkeypatch.setattr(os, "replace", rename)
    WRITERS[writer](other)
    for one in {path, other} if "link" in kind else {other}:
        assert one.stat().st_size < 10**6
        assert writer == "csv" or okl.load(one)
        assert kind == "dangling link" or one.stat().st_mode & 0o777 == 0o600
    assert {one.name for one in tmp_path.iterdir()} <= {"saved", "other"}
    assert other.is_symlink() == ("link" in kind and kind != "hard link")
    assert other.stat().st_nlink == 1 + (kind == "hard link")


@pytest.mark.parametrize("writer", WRITERS)
def test_what_cannot_be_written_is_refused_and_is_as_before(writer, tmp_path):
    folder, pipe, locked, loop = (tmp_path / one for one in ("folder", "pipe", "locked", "loop"))
    folder.mkdir()
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    if writer == "checkpoint":
        WRITERS[writer](locked)
    locked.touch()
    locked.chmod(0o444)
    before = locked.read_bytes()
    for path, error, message in (
        (folder, ValueError, "folder is not a regular file"),
        (pipe, ValueError, "pipe is not a regular file"),
        (loop, OSError, "levels of symbolic links"),
        (locked, PermissionError, "locked is read-only; make it writable"),
        (tmp_path / "nowhere" / "file", FileNotFoundError, "nowhere does not exist; make it first"),
    ):
        raises(error, message, WRITERS[writer], path)
    assert pipe.is_fifo() and loop.is_symlink() and locked.read_bytes() == before


def test_what_a_killed_process_left_is_removed_and_no_more(tmp_path):
    left, written, others = (
        tmp_path / f"{name}.part" for name in (".oklnumba-1", ".oklnumba-2", "x")
    )
    for path in (left, others):
        path.touch()
    with open(written, "xb") as file:  # another process saves
        files.lock_file(file)
        okl.OGD().save(tmp_path / "learner.npz")
    assert {one.name for one in tmp_path.iterdir()} == {"learner.npz", written.name, "x.part"}


def test_numbers_that_are_not_finite_are_not_saved(tmp_path):
    learner = okl.LinearRidge().partial_fit([[1e200]], [1.0])
    troubled("is not finite; .*reset", learner.save, tmp_path / "learner.npz")
    assert not list(tmp_path.iterdir())
