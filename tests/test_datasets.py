"""Data sets: what is loaded, from where, and what happens when it cannot be."""

import ast
import bz2
import dataclasses
import gc
import gzip
import hashlib
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import oklnumba as okl
from oklnumba import datasets
from tests.checks import peak_of, raises, refused

OWN = ("magic04", "mushrooms", "casp")
DATA = os.environ.get("OKLNUMBA_DATA")

TOY_X = np.array([[0, 2, 0.5], [1, 0, 0], [0, 0, 7], [3, 0, 1]], dtype="<f4")
TOY_Y = np.array([1, -1, -1, 1], dtype="|i1")
TOY_SVMLIGHT = b"1 2:2 3:0.5\n-1 1:1\n-1 3:7\n1 1:3 3:1\n"
TOY_CSV = b"x0,x1,skipped,label,x2\n0,2,9,1,0.5\n1,0,9,0,0\n0,0,9,0,7\n3,0,9,1,1\n"
TOY_SPACE = b" 0  2 1 0.5\n 1  0 2 0\n\n 0  0\t2 7\n 3  0 1 1\n\n"


def digest(X, y):
    return hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()


def toy_spec(**changes):
    spec = dict(shape=(4, 3), dtype="<f4", n_train=3, digest=digest(TOY_X, TOY_Y), positives=2)
    return datasets.Spec(**spec | changes)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No set from outside, an empty cache of our own, and no proxy between us and the server."""
    for name in ("OKLNUMBA_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OKLNUMBA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


@pytest.fixture
def add(monkeypatch):
    """Enter a set into the table for the time of one test."""

    def add(name, spec):
        monkeypatch.setitem(datasets.SPECS, name, spec)

    return add


@pytest.fixture
def server(monkeypatch):
    """Serve `files` (path -> bytes, or a file on disk) on the loopback; those in `cut` by half."""
    files, cut, asked = {}, set(), []
    gc.freeze()  # the collection below has only what the test leaves

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path not in files:
                self.send_error(404)
                return
            body = files[self.path]
            body = body.read_bytes() if isinstance(body, Path) else body
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if self.path in cut else body)

        def log_message(self, *args):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.files, httpd.cut, httpd.asked = files, cut, asked
    httpd.url = f"http://127.0.0.1:{httpd.server_port}/"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield httpd
    httpd.shutdown()
    thread.join(timeout=10)
    httpd.server_close()
    gc.collect()  # a socket left open by a failed download would warn here, not in a later test
    gc.unfreeze()


def save_toy(folder, X=TOY_X, y=TOY_Y):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "toy.npz", X=X, y=y, n_train=3)
    return folder / "toy.npz"


def left_in_cache(home):
    cache = home / "cache"
    return sorted(p.name for p in cache.iterdir()) if cache.exists() else []


# --- the real sets --------------------------------------------------------------------------------


def check_real(name, folder):
    """The archive, whose digest is known, agrees with the table of sets; inputs are scaled."""
    data, spec = datasets.load(name), datasets.SPECS[name]
    with np.load(Path(folder, f"{name}.npz")) as file:
        assert data.X.shape == file["X"].shape == tuple(spec.shape)
        assert (data.name, data.n_train) == (name, spec.n_train) == (name, file["n_train"])
        assert np.array_equal(data.y, file["y"])
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous and data.X.flags.writeable and data.y.flags.writeable
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    varies = low < high
    assert np.all(low[varies] == -1) and np.all(high[varies] == 1)
    assert np.all(low[~varies] == 0)
    assert data.task == ("regression" if spec.positives is None else "classification")
    if spec.positives is not None:
        assert np.array_equal(np.unique(data.y), [-1, 1])
        assert np.count_nonzero(data.y == 1) == spec.positives


@pytest.mark.parametrize("name", OWN)
def test_bundled_sets_need_nothing(name):
    check_real(name, datasets.BUNDLED)


@pytest.mark.skipif(DATA is None, reason="OKLNUMBA_DATA is not set")
@pytest.mark.parametrize("name", [name for name in datasets.names() if datasets.SPECS[name].digest])
def test_sets_of_the_data_folder(name, monkeypatch):
    if not Path(DATA, f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not in OKLNUMBA_DATA")
    monkeypatch.setenv("OKLNUMBA_DATA", DATA)
    check_real(name, DATA)


def test_every_set_but_susy_and_higgs_has_a_digest_and_a_way_to_get_it():
    for name in datasets.names():
        spec = datasets.SPECS[name]
        assert (spec.digest is None) == (name in ("susy", "higgs"))
        assert bool(spec.urls) != bool(spec.advice)


def test_raw_values_and_targets():
    data = datasets.load("casp", scale=None)
    assert (data.y.min(), round(data.y.max(), 3)) == (0, 20.999)
    assert round(data.y.mean(), 4) == 7.7485
    assert data.X.flags.c_contiguous and data.X.dtype == np.float64
    np.testing.assert_allclose(data.X[0, :2], [13558.3, 4305.35], rtol=1e-5)


# --- scaling and permuting ------------------------------------------------------------------------


@pytest.mark.parametrize("lo, hi", [(-1, 1), (0, 1), (-0.1, 0.3), (0.1, 0.7), (-3, -2.3), (1, 1e9)])
def test_scale_range_is_exact(lo, hi):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 6)) * 10.0 ** np.arange(-150, 150, 50) + 1 / 3
    values[:, 2] = 5.5
    before = values.copy()
    scaled = datasets.scale_to(values, lo, hi)
    varies = np.ptp(values, axis=0) > 0
    assert varies.sum() >= 3
    assert np.all(scaled.min(axis=0)[varies] == lo) and np.all(scaled.max(axis=0)[varies] == hi)
    assert np.all(scaled[:, ~varies] == (0 if lo <= 0 <= hi else lo))
    low, span = values.min(axis=0)[varies], np.ptp(values, axis=0)[varies]
    linear = lo + (hi - lo) * ((values[:, varies] - low) / span)
    np.testing.assert_allclose(scaled[:, varies], linear, rtol=1e-12, atol=1e-12)
    assert np.array_equal(values, before)
    assert datasets.scale_to(np.array([2, 4, 3])).tolist() == [-1, 1, 0]
    assert datasets.scale_to([7.0, 7.0], 2, 3).tolist() == [2, 2]


@pytest.mark.parametrize("name", ["magic04", "mushrooms"])
def test_scale_past_is_the_stream_of_a_standardizer(name):
    raw = datasets.load(name, scale=None, permute=3)
    X = datasets.load(name, scale="past", permute=3).X
    assert X.flags.c_contiguous and X.dtype == np.float64 and not X[0].any()
    assert np.array_equal(X, okl.Standardizer().stream(raw.X))  # which test_scaling.py looks at


def test_permutation_is_reproducible_and_keeps_rows_paired():
    plain = datasets.load("casp", scale=None)
    first, again, other = (datasets.load("casp", scale=None, permute=s) for s in (3, 3, 4))
    assert np.array_equal(first.X, again.X) and np.array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)
    order = np.random.default_rng(3).permutation(len(plain.y))
    assert np.array_equal(first.X, plain.X[order]) and np.array_equal(first.y, plain.y[order])
    assert first.n_train == plain.n_train and first.X.flags.c_contiguous


# --- the order of the sources ---------------------------------------------------------------------


def test_data_folder_wins_over_cache_over_package(home, add, monkeypatch):
    add("toy", toy_spec(digest=None))
    monkeypatch.setattr(datasets, "BUNDLED", home / "own")

    def first():
        return datasets.load("toy", scale=None).X[0, 0]

    save_toy(home / "own", TOY_X + 1)
    assert first() == 1
    save_toy(home / "cache", TOY_X + 2)
    assert first() == 2
    save_toy(home / "data", TOY_X + 3)
    assert first() == 2
    monkeypatch.setenv("OKLNUMBA_DATA", str(home / "data"))
    assert first() == 3
    for name in ("OKLNUMBA_DATA", "OKLNUMBA_CACHE"):  # where the cache is by itself
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home / "user"))
    save_toy(home / "user" / ".cache" / "oklnumba", TOY_X + 4)
    assert first() == 4
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    save_toy(home / "xdg" / "oklnumba", TOY_X + 5)
    assert first() == 5


def load(**options):
    return lambda: datasets.load("mushrooms", **options)


BAD_RANGES = [(1, 1), (1, -1), (0, np.inf), (np.nan, 1), (-1.7e308, 1.7e308)]
UNKNOWN = r"unknown data set .*; .*there are: ijcnn1, .*susy"
REFUSED = [
    (load(scale=1), r"pair \(lo, hi\), 'past' or None"),
    (load(scale=(1, 2, 3)), "scale must be"),
    (load(scale="ab"), "scale must be"),
    *((load(scale=pair), "lo < hi") for pair in BAD_RANGES),
    (load(permute=True), "permute must be an integer >= 0, but is"),
    (load(permute=-1), "permute must be"),
    (load(permute=0.5), "permute must be"),
    (lambda: datasets.scale_to([[1.0, 2.0], [3.0, np.nan]]), r"values\[1, 1\] is nan"),
    (lambda: datasets.scale_to([1.0, -np.inf]), r"values\[1\] is -inf"),
    (lambda: datasets.scale_to([-1.7e308, 1.7e308]), "more than float64 can hold"),
    (lambda: datasets.scale_to(np.empty((0, 3))), "non-empty"),
    (lambda: datasets.scale_to(3.0), "1-D or 2-D"),
    (lambda: datasets.load("adult"), UNKNOWN),
    (lambda: datasets.found(["magic04"]), UNKNOWN),
    (lambda: datasets.how_to_get(None), UNKNOWN),
]


@pytest.mark.parametrize("call, message", REFUSED)
def test_what_is_refused(call, message):
    refused(message, call)


@pytest.mark.parametrize("call", [datasets.load, datasets.found])
def test_data_folder_that_is_not_there(home, monkeypatch, call):
    monkeypatch.setenv("OKLNUMBA_DATA", str(home / "nowhere"))
    raises(NotADirectoryError, "OKLNUMBA_DATA is .*nowhere", call, "mushrooms")


@pytest.mark.parametrize("folder", ["own", "cache", "data"])
def test_found_is_what_load_would_not_download(home, add, monkeypatch, folder):
    add("toy", toy_spec(urls=("http://127.0.0.1:1/toy.txt",)))
    monkeypatch.setattr(datasets, "BUNDLED", home / "own")
    (home / "data").mkdir()
    monkeypatch.setenv("OKLNUMBA_DATA", str(home / "data"))
    assert not datasets.found("toy") and left_in_cache(home) == []
    save_toy(home / folder)
    assert datasets.found("toy")
    datasets.load("toy")


@pytest.mark.parametrize("name", datasets.names())
def test_how_to_get_says_what_to_do(name):
    how = datasets.how_to_get(name)
    assert how.startswith(f"set OKLNUMBA_DATA to a folder that holds {name}.npz")
    if datasets.SPECS[name].urls:
        code = re.search(r'or download it once: python -c "(.*)"$', how)[1]
        assert ast.unparse(ast.parse(code).body[-1]) == f"okl.datasets.load('{name}')"
    else:
        assert how.endswith(datasets.SPECS[name].advice)


def flip(content):
    at = len(content) // 4
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "one bit": lambda path: path.write_bytes(flip(path.read_bytes())),
    "empty": lambda path: path.write_bytes(b""),
    "values": lambda path: save_toy(path.parent, TOY_X + 1),
    "dtype": lambda path: save_toy(path.parent, TOY_X.astype(np.float64)),
    "labels": lambda path: save_toy(path.parent, y=np.array([1, 0, 0, 1], dtype="|i1")),
    "not finite": lambda path: save_toy(path.parent, X=np.full_like(TOY_X, np.nan)),
    "no y": lambda path: np.savez(path, X=TOY_X),
}


@pytest.mark.parametrize(
    ("place", "damage"),
    [*(("cache", damage) for damage in DAMAGES), ("data", "cut"), ("own", "cut")],
)
def test_damaged_archive(home, add, monkeypatch, damage, place):
    add("toy", toy_spec())
    (home / "data").mkdir()
    monkeypatch.setenv("OKLNUMBA_DATA", str(home / "data"))
    monkeypatch.setattr(datasets, "BUNDLED", home / "own")
    path = save_toy(home / place)
    datasets.load("toy")
    DAMAGES[damage](path)
    refused(f"{place}/toy.npz is damaged or not .*replace it", datasets.load, "toy")


# --- downloads ------------------------------------------------------------------------------------

CSV = dict(form="csv", header=1, columns=(0, 1, 4), target=3, labels=(0, 1))
MOVED = np.ascontiguousarray(TOY_X[:, [2, 0, 1]])
PARTS = b"1 2:0.18257 3:0.18257\n-1 1:0.18257\n", b"-1 1:0.18257\n1 2:0.18257\n"  # one narrower
ONES = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0]], dtype="|u1")
REAL = np.array([2.5, -1, 0, 1], dtype="<f4")
ORIGINALS = {  # the files, how they are read, and X and y where they are others
    "toy.txt": ([TOY_SVMLIGHT], {}),
    "toy.bz2": ([bz2.compress(TOY_SVMLIGHT)], {}),
    "toy.csv.gz": ([gzip.compress(TOY_CSV)], CSV),
    "toy.data": ([TOY_SPACE], dict(form="space", columns=(0, 1, 3), target=2, labels=(2, 1))),
    "moved": ([TOY_SVMLIGHT], dict(columns=(2, 0, 1)), MOVED),
    "real": ([b"2.5 2:2 3:0.5\n-1 1:1\n0 3:7\n1 1:3 3:1\n"], dict(positives=None), TOY_X, REAL),
    "parts": (PARTS, dict(dtype="|u1", unit=30**-0.5), ONES),
}


@pytest.mark.parametrize("file", ORIGINALS)
def test_download(home, add, server, file):
    bodies, spec, *arrays = ORIGINALS[file]
    X, y = (*arrays, *(TOY_X, TOY_Y)[len(arrays) :])
    paths = [f"/{k}{file}" for k in range(len(bodies))]
    urls = tuple(server.url + path[1:] for path in paths)
    add("toy", toy_spec(urls=urls, digest=digest(X, y), **spec))
    server.files |= dict(zip(paths, bodies, strict=True))
    for _ in range(2):  # the second time from the cache
        data = datasets.load("toy", scale=None)
        assert np.array_equal(data.X, X) and np.array_equal(data.y, y) and data.n_train == 3
        assert data.task == ("regression" if file == "real" else "classification")
    assert server.asked == paths
    assert left_in_cache(home) == ["toy.npz"]


WRONG = {
    "values": (TOY_SVMLIGHT.replace(b"0.5", b"0.6"), "expected sha256"),
    "balance": (TOY_SVMLIGHT.replace(b"-1 1", b"1 1"), "expected 2 labels 1"),
    "labels": (TOY_SVMLIGHT.replace(b"-1 1", b"7 1"), r"expected labels \(-1, 1\)"),
    "short": (b"1 2:2 3:0.5\n-1 1:1\n", r"expected X \(4, 3\) .*, got X \(2, 3\)"),
    "long": (TOY_SVMLIGHT * 2, r"expected X \(4, 3\)"),
    "wide": (TOY_SVMLIGHT.replace(b"3:7", b"4:7"), "n_features was set to 3"),
    "page": (b"<html>moved</html>", "not the original of 'toy'"),
    "empty": (b"", "not the original of 'toy'"),
    "cut archive": (gzip.compress(TOY_CSV, mtime=0)[:-12], "not the original of 'toy'"),
    "text": (gzip.compress(TOY_CSV.replace(b"0.5", b"abc"), mtime=0), "not the original of 'toy'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_content_leaves_nothing(home, add, server, wrong):
    body, message = WRONG[wrong]
    file, form = ("toy.csv.gz", CSV) if body[:1] == b"\x1f" else ("toy.txt", {})
    server.files[f"/{file}"] = body
    add("toy", toy_spec(urls=(server.url + file,), **form))
    with pytest.raises(ValueError, match=message) as error:
        datasets.load("toy")
    assert server.url + file in str(error.value) and "Nothing was stored" in str(error.value)
    assert left_in_cache(home) == []


FAILED = "(?s)is in none of .*/toy.txt .*failed: .*OKLNUMBA_DATA"
TROUBLES = {
    "no such file": (OSError, FAILED),
    "cut short": (OSError, FAILED),
    "no server": (OSError, FAILED),
    "no folder": (OSError, "failed: .*set OKLNUMBA_CACHE"),
    "no pooch": (ImportError, "OKLNUMBA_DATA.*needs pooch, pip install pooch"),
    "stopped": (KeyboardInterrupt, None),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_failed_download_leaves_nothing(home, add, server, monkeypatch, trouble):
    if trouble != "no such file":
        server.files["/toy.txt"] = TOY_SVMLIGHT
    if trouble == "cut short":
        server.cut.add("/toy.txt")
    elif trouble == "no folder":
        (home / "file").write_text("not a folder")
        monkeypatch.setenv("OKLNUMBA_CACHE", str(home / "file" / "cache"))
    elif trouble == "no pooch":
        monkeypatch.setitem(sys.modules, "pooch", None)
    elif trouble == "stopped":
        monkeypatch.setattr(datasets, "parse", Mock(side_effect=KeyboardInterrupt))
    url = "http://127.0.0.1:1/" if trouble == "no server" else server.url  # nothing listens there
    add("toy", toy_spec(urls=(url + "toy.txt",)))
    error, message = TROUBLES[trouble]
    raises(error, message, datasets.load, "toy")
    assert left_in_cache(home) == []


@pytest.mark.parametrize(
    "name, advice", [("susy30k", 'load "susy"'), ("mnist12", "digits 1"), ("magic04", "reinstall")]
)
def test_sets_without_a_public_original(home, monkeypatch, name, advice):
    monkeypatch.setattr(datasets, "BUNDLED", home)
    raises(FileNotFoundError, f"OKLNUMBA_DATA.*{advice}", datasets.load, name)


# --- SUSY -----------------------------------------------------------------------------------------


def test_susy_is_read_as_uci_has_it(home, add, server):
    n, d = 1000, 18
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype("<f4")
    y = np.where(rng.random(n) < 0.458, 1, -1).astype("|i1")
    row = ",".join(["%.18e"] * (d + 1)) + "\n"  # 0 or 1, then the features
    text = "".join(row % tuple(r) for r in np.column_stack([y == 1, X]).tolist())
    server.files["/SUSY.csv.gz"] = gzip.compress(text.encode())
    urls = (server.url + "SUSY.csv.gz",)
    changes = dict(shape=(n, d), n_train=n, positives=458, slack=60, urls=urls)
    add("susy", dataclasses.replace(datasets.SPECS["susy"], **changes))
    data = datasets.load("susy", scale=None)
    assert np.array_equal(data.X, X) and np.array_equal(data.y, y)
    assert left_in_cache(home) == ["susy.npz"]


def test_susy_loads_in_at_most_twice_its_memory(home, add):
    n, d = 100_000, 18
    rng = np.random.default_rng(0)
    spec = dataclasses.replace(
        datasets.SPECS["susy"], shape=(n, d), n_train=n, positives=n // 2, slack=0
    )
    add("susy", spec)
    (home / "cache").mkdir()
    y = np.where(np.arange(n) % 2, 1, -1).astype("|i1")
    np.savez(home / "cache" / "susy.npz", X=rng.normal(size=(n, d)).astype("<f4"), y=y, n_train=n)
    datasets.load("susy")  # whatever is imported late
    peak, data = peak_of(lambda: datasets.load("susy", permute=1))
    assert peak < 2 * data.X.nbytes
