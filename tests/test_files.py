"""Files that are damaged, cut off, or of another kind are one ValueError that names the file."""

import json

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.files import FORMAT, digest_of, read_npz, write_npz
from tests.battery import make, stream


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


def test_what_is_written_is_read(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(["x", "yz"]), "c": np.zeros((0, 4))}
    write_npz(tmp_path / "file.npz", {"text": "é", "list": [1, None]}, arrays)
    meta, found = read_npz(tmp_path / "file.npz")
    assert meta == {"format": FORMAT, "text": "é", "list": [1, None]}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert [p.name for p in tmp_path.iterdir()] == ["file.npz"]


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
    "another type": ({"state_alpha": np.zeros(5, "f4")}, {}, "expected (5,), float64"),
    "no coins": ({}, {"state": {}}, "it lacks 'coins'"),
    "no learner": ({}, {"spec": {"class": "Linear", "params": {}}}, "expected a learner"),
    "bad parameter": (
        {},
        {"spec": {"class": "OGD", "params": {"eta": -1.0}}},
        "eta must be a number > 0",
    ),
    "later format": ({}, {"format": FORMAT + 1}, "a later oklnumba wrote it"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_does_not_fit_is_refused(saved, name):
    new_arrays, new_meta, words = CHANGES[name]
    meta, arrays = read_npz(saved)
    text, arrays = json.dumps(meta | new_meta), arrays | new_arrays
    np.savez(saved, meta=text, digest=digest_of(text, arrays), **arrays)
    assert words in refusal(saved)


def test_what_is_no_file_of_ours_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    refusal(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    assert "it lacks" in refusal(tmp_path / "other.npz")
    (tmp_path / "folder").mkdir()
    refusal(tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        okl.load(tmp_path / "nothing.npz")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        okl.OGD().save(tmp_path / "nowhere" / "learner.npz")


def test_numbers_that_are_not_finite_are_not_saved(tmp_path):
    learner = okl.LinearRidge().partial_fit([[1e200]], [1.0])
    with pytest.raises(FloatingPointError, match="is not finite; .*reset"):
        learner.save(tmp_path / "learner.npz")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_pickle(tmp_path):
    np.savez(tmp_path / "objects.npz", meta=np.array([{}], dtype=object))
    refusal(tmp_path / "objects.npz")
