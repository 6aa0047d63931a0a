"""The service of docs/service.md, as it stands there."""

import re
import runpy
from contextlib import contextmanager

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.command.parser import main
from tests.checks import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx`")
pytest.importorskip("fastapi", reason="the service is of FastAPI")
pytest.importorskip("fcntl", reason="the service locks a file")
PAGE = (ROOT / "docs/service.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def service(tmp_path, monkeypatch):
    """Return what starts a process of the service on a model that has learned 40 rows."""
    from starlette.testclient import TestClient

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    rows = [{"price": float(a), "size": float(b)} for a, b in X]
    model = okl.Monitored(okl.PKAWV(okl.FourierFeatures(5)))
    for row in rows:
        model.learn_one(row, row["price"])
    path = tmp_path / "model.npz"
    model.save(path)
    monkeypatch.setenv("MODEL", str(path))
    (tmp_path / "service.py").write_text(CODE, encoding="utf-8")

    @contextmanager
    def start():
        process = runpy.run_path(str(tmp_path / "service.py"))
        with process["owner"], TestClient(process["app"]) as client:  # at its end files are closed
            yield client

    return start


def numbers(client):
    """Return what /metrics counts."""
    lines = client.get("/metrics").text.splitlines()
    return {name.removeprefix("oklnumba_"): float(value) for name, value in map(str.split, lines)}


def teach(client, row, label, rounds):
    return client.post("/label", json={"row": row, "label": label, "rounds": rounds})


def teach_file(path, labels):
    """Save the model that ``oklnumba run`` makes of a file with these labels."""
    rows = "".join(f"{k / 40},0,{labels[k * len(labels) // 40]}\n" for k in range(40))
    (path.parent / "past.csv").write_text("price,size,sold\n" + rows, encoding="utf-8")
    learner = ["--learner", "Monitored(PKAWV(FourierFeatures(5)))", "--save", str(path)]
    assert main(["run", str(path.parent / "past.csv"), "--label", "sold", *learner]) == 0


ROW = {"price": 0.5, "size": 0.1}


def test_it_forecasts_learns_counts_and_goes_on(service):
    with service() as client:
        given = client.post("/forecast", json=ROW).json()
        assert given["rounds"] == 40 and abs(given["forecast"] - 0.5) < 0.2
        assert client.post("/forecast", json=ROW).json() == given  # nothing changes
        assert teach(client, ROW, 0.9, given["rounds"]).status_code == 200
        assert client.post("/forecast", json=ROW).json()["forecast"] > given["forecast"]
        found = numbers(client)
        assert (found["forecasts"], found["labels"], found["rounds"]) == (3, 1, 41)
        assert found["recent_loss"] > 0.0 and found["out_of_range"] < 1.0
    with service() as client:  # after a restart
        assert numbers(client)["rounds"] == 41 and numbers(client)["labels"] == 0


def test_a_model_that_is_exchanged_stays_and_a_damaged_one_is_not_served(service, tmp_path):
    path = tmp_path / "model.npz"
    whole = path.read_bytes()
    with service() as client:
        assert teach(client, ROW, 0.9, 40).status_code == 200
        path.write_bytes(whole[:1000])
        for _ in range(2):
            answer = client.post("/forecast", json=ROW)
            assert answer.status_code == 422 and "damaged" in answer.text
        path.write_bytes(whole)  # and the process ends before the next request
    assert okl.load(path).rounds == 40


@pytest.mark.parametrize(
    "labels, right, wrong",
    [(["no", "yes"], "yes", "1"), ([*"abc"], "b", "d"), ([0, 1], 1, "1"), ([2.5, 3, 9], 3, "3")],
)
def test_labels_and_classes_are_what_the_file_had(service, tmp_path, labels, right, wrong):
    teach_file(tmp_path / "model.npz", labels)
    with service() as client:
        answer = client.post("/forecast", json={"price": 0.9, "size": 0.0}).json()
        said = answer.get("class", answer["forecast"])
        assert said == (pytest.approx(9, abs=3.0) if 2.5 in labels else labels[-1])
        assert ("class" in answer) == (len(labels) == 2)
        refused = teach(client, ROW, wrong, 40)
        assert refused.status_code == 422 and repr(wrong) in refused.text
        assert teach(client, ROW, right, 40).status_code == 200
        assert numbers(client)["rounds"] == 41


def test_a_new_version_forecasts_beside_the_old_one_and_learns_once_that_has_stopped(service):
    with service() as new:
        with service() as old:
            asked = old.post("/forecast", json=ROW).json()
            assert teach(old, ROW, 0.9, 40).status_code == 200
            assert new.post("/forecast", json=ROW).json() == asked
            assert teach(new, ROW, 0.9, 40).status_code == 409
        assert new.post("/forecast", json=ROW).json()["forecast"] > asked["forecast"]
        assert teach(new, ROW, 0.9, asked["rounds"]).status_code == 200
        assert numbers(new)["rounds"] == 42
    with service() as client:
        assert numbers(client)["rounds"] == 42


@pytest.mark.parametrize(
    "row",
    [{"price": 0.5}, {"price": "dear", "size": 0.1}, *(ROW | {"size": x} for x in (None, [1], {}))],
)
def test_bad_rows_are_refused_and_change_nothing(service, row):
    with service() as client:
        for answer in (client.post("/forecast", json=row), teach(client, row, 1.0, 40)):
            assert answer.status_code == 422 and len(answer.text) > 20
        assert teach(client, ROW, 1.0, 99).status_code == 422  # rounds that have not been
        assert numbers(client)["rounds"] == 40 and numbers(client)["labels"] == 0


def test_one_process_learns_and_others_read_what_it_saves(service):
    with service() as writer, service() as reader:
        assert teach(writer, ROW, 0.9, 40).status_code == 200
        assert teach(reader, ROW, 0.9, 40).status_code == 409
        before = reader.post("/forecast", json=ROW).json()
        for _ in range(99):
            teach(writer, ROW, 0.9, 40)
        after = reader.post("/forecast", json=ROW).json()
        assert (before["rounds"], after["rounds"]) == (40, 140)
        assert after == writer.post("/forecast", json=ROW).json()
