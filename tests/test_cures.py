"""What a message says to do is right for the input that caused it: each cure is followed literally.

A row is what is given, a call that refuses or warns, the cure as the message has it, what a user
makes of it (CURE is that text; then the call comes again unless there is ``found``), and the right
result. In place of this a name, such as X, says what the cure takes the place of, and a comma that
it is one more argument. ``label=...`` and the like in a cure are filled in.
"""

import contextlib
import io
import re
import shlex
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba.command.parser import main
from tests.checks import together

MODULES = (
    "bz2 glob gzip lzma os pickle pyarrow pyarrow.feather shutil river.compose river.preprocessing "
    "river.linear_model river.stats scipy.sparse"
)

RNG = np.random.default_rng(0)
A = RNG.integers(-1023, 1024, (60, 2)) / 1024  # exact in a CSV
Y = A @ [1.0, -2.0] + 0.5
SIGNS = np.where(Y > 0.5, 1.0, -1.0)
TOWNS = np.array(["Bonn", "Oslo", "Rome"])[RNG.integers(0, 3, 60)]
FRAME = pd.DataFrame({"a": A[:, 0], "b": A[:, 1], "y": Y})
AB = FRAME[["a", "b"]]
GAPS = AB.mask(A > 0.9)
FULL = GAPS.fillna(GAPS.median())
MIXED = FRAME.assign(town=TOWNS)
DAYS = pd.Series(pd.date_range("2020-01-01", periods=60, freq="31h"))
ORDER, SORTED = np.random.default_rng(0).permutation(60), np.argsort(SIGNS)
PAIR, TAYLOR, LABEL = ["Bonn", "Oslo"], okl.TaylorFeatures(2), "--label y"
Classifier, Regressor = okl.interop.OnlineClassifier, okl.interop.OnlineRegressor
to_river, theory, pandas = okl.interop.to_river, okl.theory, pd
FILLED = {
    "label=...": "label='y'",
    "drop=[...]": "drop=['b']",
    "encode=[...]": "encode=['town']",
    "dates=[...]": "dates=['b']",
    "classes=[...]": "classes=sorted({*y})",
    "np.asarray(...)": "np.asarray(y)",
    "okl.stream(...)": "okl.stream(FRAME, label='y')",
    "okl.run(...,": "okl.run(learner, X, y,",
    "A,B": "b",
}


def ridge():
    return okl.LinearRidge()


def towns():
    return okl.OneVsRest(ridge(), ["Bonn", "Oslo", "Rome"])


def play(X, y=None, learner=None, **options):
    """Return the forecasts of a run."""
    return okl.run(learner or ridge(), X, y, **options).predictions


def read(source, **options):
    """Return the forecasts of a run on a stream."""
    return play(okl.stream(source, **options))


def command(file, *words):
    """Return what ``oklnumba run`` prints, but names and times; ValueError where it refuses."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["run", file, *shlex.split(" ".join(words)), "--learner", "LinearRidge"])
    if status:
        raise ValueError(err.getvalue())
    return re.sub(r"(?m)^(file|time) .*", "", out.getvalue())


def played(model, rows, labels):
    """Return a model of river after some rows."""
    for x, y in zip(rows, labels, strict=True):
        model.learn_one(x, y)
    return model


PLAIN, NAMED, FIRST = "play(A, Y)", "play(AB, Y)", "play(A[:, :1], Y)"
FOUND = "found = play(CURE)"
IN_DAYS = "(np.asarray(y, 'M8[us]') - np.datetime64(0, 'us')) / np.timedelta64(1, 'D')"
OF_DAYS = "play(A, 18262 + 31 / 24 * np.arange(60))"
WITH_TOWNS = "read(MIXED, label='y', drop=['b'], encode=['town'])"
CASES = {
    # ---- arrays ----
    "a row": ("X = A[0]", "model.predict(X)", "np.reshape(X, (1, -1))", "X",
        "model.predict(A[:1])"),
    "a list": ("X = [1, 2]", "model.predict(X)", "np.reshape(X, (1, -1))", "X",
        "model.predict([[1, 2]])"),
    "a feature": ("X = A[:, 0]", "play(X, y)", "np.reshape(X, (-1, 1))", "X", FIRST),
    "images": ("X = A.reshape(30, 2, 2)", "play(X, y[:30])", "np.reshape(X, (len(X), -1))", "X",
        "play(A.reshape(30, 4), Y[:30])"),
    "points": ("", "model.predict_one(X)", "predict(X)", "found = model.CURE", "model.predict(A)"),
    "points to learn": ("", "learner.learn_one(X, y)", "partial_fit(X, y)",
        "found = learner.CURE.predict(A)", "model.predict(A)"),
    "a number": ("x = 2.0", "ridge().predict_one(x)", "[x]", "x", "0.0"),
    "labels in a column": ("y = Y[:, None]", "play(X, y)", "np.ravel(y)", "y", PLAIN),
    "labels in lists": ("y = Y[:, None].tolist()", "play(X, y)", "np.ravel(y)", "y", PLAIN),
    "a frame of labels": ("y = FRAME[['y']]", "play(X, y)", "y['y']", "y", PLAIN),
    "labels in polars": ("y = pl.DataFrame({'y': Y})", "play(X, y)", "y['y']", "y", PLAIN),
    "several labels": ("y = A", "play(X, y, learner)", "okl.MultiOutput(learner)", "learner",
        "play(A, A, okl.MultiOutput(ridge()))"),
    "one of several": ("learner = okl.MultiOutput(ridge())", "play(X, y, learner)",
        "np.reshape(y, (-1, 1))", "y", "play(A, Y)[:, None]"),
    "1 and 2": ("y = (SIGNS + 3) / 2", "play(X, y, okl.FOGD())",
        "np.where(np.asarray(y) == 2.0, 1, -1)", "y", "play(A, SIGNS, okl.FOGD())"),
    "a text among labels": ("y = [*Y[:50], 'oops', *Y[51:]]", "play(X, y)",
        "'oops' in row 50, among numbers; correct such values", "y = [*Y]", PLAIN),
    "a column of classes": ("y = pd.DataFrame({'town': TOWNS})", "play(X, y, towns())", "y['town']",
        "y", "play(A, TOWNS, towns())"),
    "no class": ("y = pd.Series(TOWNS).where(np.arange(60) > 3)", "play(X, y, towns())",
        "okl.run(..., labels='optional')", "learner = towns(); found = CURE.predictions",
        "play(A, pd.Series(TOWNS).where(np.arange(60) > 3), towns(), labels='optional')"),
    "one output": ("learner = okl.MultiOutput(ridge())", "play(X, y, learner)[:, 0]",
        "np.reshape(y, (-1, 1))", "y", PLAIN),
    "0 and 1": ("y = [*map(int, SIGNS > 0)]", "play(X, y, okl.FOGD())",
        "y = np.where(np.asarray(y) == 1.0, 1, -1)", "CURE", "play(A, SIGNS, okl.FOGD())"),
    "1 and 2 in a stream": ("data, learner = FRAME.assign(y=(SIGNS + 3) / 2), okl.FOGD()",
        "play(okl.stream(data, label='y'), learner=learner)", "okl.stream(..., classes=(1.0, 2.0))",
        "found = play(okl.stream(data, label='y', classes=(1.0, 2.0)), learner=learner)",
        "play(AB, SIGNS, okl.FOGD())"),
    "a regression": ("learner = okl.FOGD()", "play(X, y, learner)", "loss='squared'",
        "learner = okl.FOGD(CURE)", "play(A, Y, okl.FOGD(loss='squared'))"),
    "classes as numbers": ("y = (SIGNS + 1) / 2", "play(X, y)", "y = np.where(y == 1, 1, -1)",
        "CURE", "play(A, SIGNS)"),
    "classes as numbers in a stream": ("data = FRAME.assign(y=SIGNS > 0).astype(float)",
        "read(data, label='y')", "okl.stream(..., classes=(0, 1))",
        "found = read(data, label='y', classes=(0, 1))", "play(AB, SIGNS)"),
    "texts as classes": ("y = TOWNS.tolist()", "play(X, y, learner)",
        "okl.OneVsRest(learner, classes=[...])", "learner",
        "play(A, TOWNS, okl.OneVsRest(ridge(), sorted({*TOWNS})))"),
    "labels beyond C": ("learner = okl.OnlineNewtonStep(loss='squared')", "play(X, 3 * y, learner)",
        "raise C", "learner = okl.OnlineNewtonStep(loss='squared', C=12.0)",
        "play(A, 3 * Y, okl.OnlineNewtonStep(loss='squared', C=12.0))"),
    "sparse labels": ("y = sparse.csr_array(Y[:, None])", "play(X, y)", "y.toarray().ravel()", "y",
        PLAIN),
    "texts of numbers": ("y = [*map(str, Y)]", "play(X, y)", "np.asarray(...).astype(float)", "y",
        PLAIN),
    "texts of numbers in X": ("y = A.astype(str)", "play(y, Y)", "np.asarray(...).astype(float)",
        "y", PLAIN),
    "bytes of numbers": ("y = A.astype('S')", "play(y, Y)", "np.asarray(...).astype(float)", "y",
        PLAIN),
    "texts of numbers in a frame": ("X = AB.astype(str)", "play(X, y)",
        "np.asarray(...).astype(float)", "X = X.apply(lambda y: CURE)", NAMED),
    "dicts": ("X = AB.to_dict('records')", "play(X, y)", "pandas.DataFrame(X)", "X", NAMED),
    "records": ("X = AB.to_records(index=False)", "play(X, y)", "pandas.DataFrame(X)", "X", NAMED),
    "a dict of columns": ("X = AB.to_dict('list')", "play(X, y)", "pandas.DataFrame(X)", "X",
        NAMED),
    "a dict": ("X = AB.iloc[0].to_dict()", "named.predict(X)", "pandas.DataFrame([X])", "X",
        "named.predict(AB[:1])"),
    "no inputs": ("X, n = None, 60", "play(X, y)", "X=np.ones((n, 1))", "CURE",
        "play(np.ones((60, 1)), Y)"),
    "a pair": ("X = A, Y", "play(X)", "X[0], X[1]", "found = play(CURE)", PLAIN),
    "the name of the labels": ("X, y, frame = AB, 'y', FRAME", "play(X, y)",
        "okl.stream(frame, label='y')", FOUND, NAMED),
    "an iterator": ("X = iter(A)", "play(X, y)", "np.array(list(X))", "X", PLAIN),
    "an iterator of rows": ("X = iter(A)", "play(X)", "okl.run(learner, X, y)",
        "X = A; found = CURE.predictions", PLAIN),
    "pairs of rows": ("", "play(zip(X, y))", "okl.run(learner, X, y)",
        "found = CURE.predictions", PLAIN),
    "sorted by class": ("X, y, rng = A[SORTED], SIGNS[SORTED], np.random.default_rng(0)",
        "play(X, y)", "order = rng.permutation(len(y)), X[order], y[order]",
        "order, found = rng.permutation(len(y)), 0; X, y = X[order], y[order]; found = play(X, y)",
        "play(A[SORTED][ORDER], SIGNS[SORTED][ORDER])"),
    # ---- frames ----
    "a gap": ("X = GAPS", "play(X, y)",
        "column = column.astype(float) and column.fillna(column.median())", "X = impute(X, 'CURE')",
        "play(FULL, Y)"),
    "a gap among whole numbers": (
        "X = GAPS.round().astype('Int64').assign(c=pd.array([True, None, False] * 20))",
        "play(X, y)", "column = column.astype(float) and column.fillna(column.median())",
        "X = impute(X, 'CURE')",
        "play(GAPS.round().assign(c=[1.0, 0.5, 0.0] * 20).pipe(lambda X: "
        "X.fillna(X.median())), Y)"),
    "an infinity": ("X = AB.mask(A > 0.9, np.inf)", "play(X, y)",
        "column = column.astype(float).replace([np.inf, -np.inf], np.nan) and "
        "column.fillna(column.median())", "X = impute(X, 'CURE')", "play(FULL, Y)"),
    "a column of gaps": ("data = FRAME.assign(b=np.nan)", "play(data[['a', 'b']], y)",
        "okl.stream(data, label=..., drop=[...])", FOUND, "read(FRAME, label='y', drop=['b'])"),
    "texts": ("data = MIXED", "play(data.drop(columns='y'), y)",
        "okl.stream(data, label=..., drop=[...], encode=[...])", FOUND, WITH_TOWNS),
    "durations": ("X = pd.DataFrame({'a': DAYS - DAYS[0]})", "play(X, y)",
        "np.asarray(column, 'm8[us]') / np.timedelta64(1, 's')", "X = X.apply(lambda column: CURE)",
        "play(pd.DataFrame({'a': 31 * 3600.0 * np.arange(60)}), Y)"),
    "durations in polars": ("X = pl.DataFrame({'a': DAYS - DAYS[0]})", "play(X, y)",
        "np.asarray(column, 'm8[us]') / np.timedelta64(1, 's')",
        "X = pl.DataFrame({'a': CURE for column in [X['a']]})",
        "play(pd.DataFrame({'a': 31 * 3600.0 * np.arange(60)}), Y)"),
    "dates": ("frame = FRAME.assign(b=DAYS)", "play(frame[['a', 'b']], y)",
        "okl.stream(frame, label=..., dates=[...])", FOUND,
        "read(FRAME.assign(b=DAYS.astype(str)), label='y', dates=['b'])"),
    "texts in an array": ("X = np.column_stack([A[:, 0].astype(object), TOWNS])", "play(X, y)",
        "data = pandas.DataFrame(X)",
        "CURE; found = read(data.assign(y=y), label='y', encode=[1])",
        "play(np.column_stack([A[:, :1], TOWNS[:, None] == np.unique(TOWNS)]), Y)"),
    "dates in an array": ("X = DAYS.to_numpy()[:, None]", "play(X, y)",
        "such as the hour or the weekday", "X = DAYS.dt.day_of_week.to_numpy()[:, None]",
        "play(DAYS.dt.day_of_week.to_numpy()[:, None], Y)"),
    "dates as labels": ("y = list(DAYS)", "play(X, y)", IN_DAYS, "y", OF_DAYS),
    "dates as labels, in a frame": ("y = DAYS", "play(X, y)", IN_DAYS, "y", OF_DAYS),
    "dates as labels, in a stream": ("y = DAYS", "read(FRAME.assign(y=y), label='y')", IN_DAYS, "y",
        OF_DAYS.replace("A", "AB")),
    "durations as labels": ("y = (DAYS - DAYS[0]).to_numpy()", "play(X, y)",
        "np.asarray(y, 'm8[us]') / np.timedelta64(1, 's')", "y",
        "play(A, 31 * 3600.0 * np.arange(60))"),
    "another name": ("X = AB.rename(columns={'b': 'bb'})", "named.predict(X)", "did you mean 'b'?",
        "X = X.rename(columns={'bb': 'b'})", "named.predict(AB)"),
    "two of one name": ("X = AB.rename(columns={'b': 'a'})", "named.predict(X)",
        "rename one of them", "X.columns = ['a', 'b']", "named.predict(AB)"),
    "a text in a dict": ("frame, x = MIXED.drop(columns='b'), {'a': 1.0, 'town': 'Rome'}",
        "learner.predict_one(x)", "okl.run(learner, okl.stream(frame, label=..., encode=['town']))",
        "CURE", "towned().predict(pd.DataFrame({'a': [1.0], 'town': ['Rome']}))[0]"),
    "a lazy frame": ("X = pl.DataFrame(AB).lazy()", "play(X, y)", "X.collect()", "X", NAMED),
    "a stream": ("X = okl.stream(FRAME, label='y')", "learner.partial_fit(X, y)",
        "okl.run(learner, X)", "found = CURE.predictions", NAMED),
    # ---- labels that are missing ----
    "no label": ("y[3] = np.nan", "play(X, y)", "okl.run(..., labels='optional')",
        "found = CURE.predictions",
        "play(A, np.where(np.arange(60) == 3, np.nan, Y), labels='optional')"),
    "lags of a series": ("X, y = AB.shift(5), pd.Series(Y).mask(np.arange(60) < 3)", "play(X, y)",
        "X[5:], y[5:]", "X, y = CURE", "play(AB[:55], Y[5:])"),
    "a series that begins later": ("y = pd.Series(Y).mask(np.arange(60) < 7)", "play(X, y)",
        "X[7:], y[7:]", "X, y = CURE", "play(A[7:], Y[7:])"),
    "a season without a label": ("y = pd.Series(Y).mask(np.arange(60) % 7 == 6); season = 5",
        "play(X, y, okl.Lags(ridge(), season=season), labels='optional')",
        "y.fillna(y.shift(season))", "y",
        "play(A, pd.Series(Y).where(np.arange(60) % 7 < 6, pd.Series(Y).shift(5)), "
        "okl.Lags(ridge(), season=5), labels='optional')"),
    "late labels": ("learner = okl.Lags(ridge())", "play(X, y, learner, delay=2)",
        "play the learner within it", "learner = learner.learner", "play(A, Y, delay=2)"),
    "late labels of intervals": ("learner = okl.Monitored(okl.Intervals(ridge()))",
        "play(X, y, learner, delay=2)", "put Intervals around the others",
        "learner = okl.Intervals(okl.Monitored(ridge()))", "play(A, Y, delay=2)"),
    "late labels of several intervals": ("learner = okl.MultiOutput(okl.Intervals(ridge()))",
        "play(X, A, learner, delay=2)", "play each output by itself",
        "found = np.column_stack([play(X, y, okl.Intervals(ridge()), delay=2) for y in A.T])",
        "play(A, A, okl.MultiOutput(ridge()), delay=2)"),
    "late labels of several with lags": ("learner = okl.MultiOutput(okl.Lags(ridge()))",
        "play(X, A, learner, delay=2)",
        "play each output by itself and take the lags of okl.Horizon",
        "found = np.column_stack([play(X, y, okl.Horizon(ridge(), steps=3)) for y in A.T])",
        "np.column_stack([play(A, y, okl.Horizon(ridge(), steps=3)) for y in A.T])"),
    "late labels in front of lags": ("learner = okl.Lags(ridge())",
        "play(X, y, okl.Horizon(learner, steps=2))", "take the lags of okl.Horizon",
        "learner = learner.learner", "play(A, Y, okl.Horizon(ridge(), steps=2))"),
    # ---- runs ----
    "a path": ("X = 'f.csv'", "play(X)", "okl.stream('f.csv', label=...)", "X", NAMED),
    "no checkpoint": ("play(X[:40], y[:40], learner, checkpoint='run.npz')",
        "play(X[40:], y[40:], resume=True)", "checkpoint=...",
        "found = play(X[40:], y[40:], resume=True, checkpoint='run.npz')", PLAIN),
    "a checkpoint of other data": ("play(X, y, checkpoint='run.npz')",
        "play(X, 2 * y, checkpoint=file)", "name another file", "file = 'other.npz'",
        "play(A, 2 * Y)"),
    "a learner that cannot be saved": ("learner = played(linear_model.LinearRegression(), [], [])",
        "play(X, y, learner, checkpoint='run.npz')", "leave checkpoint out",
        "found = play(X, y, learner)", "play(A, Y, linear_model.LinearRegression())"),
    "rounds not recorded": ("run = okl.run(ridge(), X, y, record=9)", "regret(run)", "record='all'",
        "run = okl.run(ridge(), X, y, CURE)", "regret(okl.run(ridge(), A, Y))"),
    "a regret without data": ("run = okl.run(ridge(), okl.stream(FRAME, label='y'))", "regret(run)",
        "data=okl.stream(...)", ",", "regret(okl.run(ridge(), A, Y))"),
    "a regret without data, by arrays": (
        "run = okl.run(ridge(), iter([(X, y)])); kernel, lam = okl.Linear(), 1.0", "regret(run)",
        "data=(X, y)", ",", "regret(okl.run(ridge(), A, Y))"),
    "a regret of several": (
        "run = okl.run(okl.MultiOutput(ridge()), X, A); kernel, lam, k, at = okl.Linear(), 1, "
        "1, None; forecasts = run.predictions; y = A[:, 1]", "regret(run)",
        "theory.Hindsight(kernel, X, y, lam).regret(forecasts[:, k], at)",
        "found = np.round(CURE[-1], 9)", "regret(okl.run(ridge(), A, A[:, 1]))"),
    # ---- files of models ----
    "no folder": ("", "model.save('new/m.npz')", "make it first",
        "os.mkdir('new'); model.save('new/m.npz'); found = okl.load('new/m.npz').predict(A)",
        "model.predict(A)"),
    "a class of one's own": (
        "path = 'm.npz'; Mine = make_class(); Mine().partial_fit(A, Y).save(path)",
        "okl.load(path).predict(A)", "okl.load(path, classes=[Mine])", "found = CURE.predict(A)",
        "okl.OGD().partial_fit(A, Y).predict(A)"),
    "a function": ("learner = okl.PKAWV(okl.BasisFeatures(np.sin, np.eye)).partial_fit(A, Y)",
        "learner.save('m.npz')", "pickle.dump(learner, file)",
        "file = open('m', 'wb'); CURE; file.close(); found = "
        "pickle.loads(Path('m').read_bytes()).predict(A)",
        "okl.PKAWV(okl.BasisFeatures(np.sin, np.eye)).partial_fit(A, Y).predict(A)"),
    "a class for a learner": ("learner = okl.LinearRidge", "play(X, y, learner)",
        "okl.LinearRidge(...)", "learner = okl.LinearRidge()", PLAIN),
    # ---- files of rows ----
    "no label named": ("", "read('f.csv')", "label=...", ",", NAMED),
    "both like and columns": ("", "read('f.csv', like=named, columns=['a'], label='y')",
        "leave out columns", "found = read('f.csv', like=named, label='y')", NAMED),
    "columns of LIBSVM": ("write('f.svm', '1 1:2 2:4\\n3 2:1\\n')", "read('f.svm', drop=['a'])",
        "leave out label, drop, columns, encode, dates and impute", "found = read('f.svm')",
        "play([[2.0, 4.0], [0.0, 1.0]], [1.0, 3.0])"),
    "fewer columns of LIBSVM": (
        "write('f.svm', '1 1:2\\n3 2:1\\n'); learner.partial_fit(np.eye(3), [1, 2, 3])",
        "play(okl.stream('f.svm'), learner=learner)", "width=3",
        "found = play(okl.stream('f.svm', CURE), learner=learner)",
        "play([[2, 0, 0], [0, 1, 0]], [1, 3], ridge().partial_fit(np.eye(3), [1, 2, 3]))"),
    "another impute": ("okl.run(learner, okl.stream(FRAME, label='y', impute='median'))",
        "play(okl.stream(GAPS.assign(y=Y), label='y', impute='last'), learner=learner)",
        "leave impute out",
        "found = play(okl.stream(GAPS.assign(y=Y), label='y'), learner=learner)",
        "play(okl.stream(pd.concat([FRAME, GAPS.assign(y=Y)]), label='y', impute='median'))[60:]"),
    "no columns": ("data = FRAME[['y']]", "read(data, label='y')", "needs a column of ones",
        "data = data.assign(one=1)", "play(np.ones((60, 1)), Y)"),
    "files with labels and without": ("AB.to_csv('g.csv', index=False)",
        "read(['f.csv', 'g.csv'], label='y')", "in two streams",
        "found = read('f.csv', label='y'); play(okl.stream('g.csv', like=named), "
        "labels='optional')", NAMED),
    "a folder named as a column": (
        "os.makedirs('in/b=1'); shutil.copy('f.parquet', 'in/b=1'); source = 'in'",
        "read(source, label='y')", "pass a list of the files", "source = [*glob.glob('in/*/*')]",
        NAMED),
    "semicolons": ("FRAME.to_csv('g.csv', sep=';', index=False)", "read('g.csv', label='y')",
        "delimiter=';'", ",", NAMED),
    "bars in gzip": ("FRAME.to_csv('g.csv.gz', sep='|', index=False)",
        "read('g.csv.gz', label='y')", "delimiter='|'", ",", NAMED),
    "tabs": ("FRAME.to_csv('g.csv', sep='\\t', index=False)", "read('g.csv', label='y')",
        "format='tsv'", ",", NAMED),
    "commas in a TSV": ("write('g.tsv', CSV)", "read('g.tsv', label='y')", "delimiter=','", ",",
        NAMED),
    "UTF-16": ("write('g.csv', CSV.encode('utf-16'))", "read('g.csv', label='y')",
        "encoding='utf-16'", ",", NAMED),
    "Latin-1": ("write('g.csv', CSV.replace('a', 'ä').encode('latin-1'))",
        "read('g.csv', label='y')", "encoding='latin-1'", ",", NAMED),
    "no header": ("write('g.csv', CSV.split('\\n', 1)[1])", "read('g.csv', label='y')",
        "header=False", "found = read('g.csv', CURE, label=-1)", NAMED),
    "gzip": ("write('g.csv', gzip.compress(CSV.encode()))", "read('g.csv', label='y')",
        "must end in .gz", "os.rename('g.csv', 'g.csv.gz'); found = read('g.csv.gz', label='y')",
        NAMED),
    "bzip2": ("write('g.csv', bz2.compress(CSV.encode()))", "read('g.csv', label='y')",
        "must end in .bz2", "os.rename('g.csv', 'g.csv.bz2'); found = read('g.csv.bz2', label='y')",
        NAMED),
    "xz": ("write('g.csv.xz', lzma.compress(CSV.encode()))", "read('g.csv.xz', label='y')",
        "unpack it",
        "write('g.csv', lzma.open('g.csv.xz').read()); found = read('g.csv', label='y')", NAMED),
    "xz as CSV": ("write('g.csv', lzma.compress(CSV.encode()))", "read('g.csv', label='y')",
        "unpack it",
        "write('h.csv', lzma.open('g.csv').read()); found = read('h.csv', label='y')", NAMED),
    "Parquet as CSV": ("FRAME.to_parquet('g.csv')", "read('g.csv', label='y')",
        "format='parquet'", ",", NAMED),
    "texts of numbers in a file": ("FRAME.assign(b=AB.b.astype(str)).to_parquet('g.parquet')",
        "read('g.parquet', label='y')", "pandas.read_parquet(FILE).astype({COLUMN: float})",
        "found = read(pandas.read_parquet('g.parquet').astype({'b': float}), label='y')", NAMED),
    "a long text in a CSV": (
        "FRAME.assign(note=['x' * 2_000_000] * 2 + [''] * 58).to_csv('g.csv', index=False)",
        "read('g.csv', label='y', drop=['note'])", "okl.stream(pandas.read_csv(",
        "found = read(pandas.read_csv('g.csv'), label='y', drop=['note'])", NAMED),
    "Feather V1": (
        "feather.write_feather(pyarrow.Table.from_pandas(FRAME), 'g.feather', version=1)",
        "read('g.feather', label='y')", "okl.stream(pandas.read_feather('g.feather'), label=...)",
        FOUND, NAMED),
    "an Arrow stream": (
        "table = pyarrow.Table.from_pandas(FRAME); writer = pyarrow.ipc.new_stream('g.arrow', "
        "table.schema); writer.write_table(table); writer.close()", "read('g.arrow', label='y')",
        "okl.stream(pyarrow.ipc.open_stream('g.arrow').read_all(), label=...)", FOUND, NAMED),
    "no suffix": ("write('g', CSV)", "read('g', label='y')", "format=",
        "found = read('g', CURE'csv', label='y')", NAMED),
    "a column of lists": ("data = MIXED.assign(b=[[1]] * 60)",
        "read(data, label='y', encode=['b', 'town'])", "drop it",
        "found = read(data, label='y', drop=['b'], encode=['town'])", WITH_TOWNS),
    # ---- the command line ----
    "a gap in a file": ("FRAME.assign(b=np.nan).to_csv('g.csv', index=False)",
        "command('g.csv', LABEL)", "--drop A,B", ",", "command('f.csv', LABEL, '--drop b')"),
    "texts in a file": ("MIXED.to_csv('g.csv', index=False)", "command('g.csv', LABEL)",
        "--encode A,B", "found = command('g.csv', LABEL, 'CURE'.replace(' b', ' town'))",
        "command('g.csv', LABEL, '--encode town')"),
    "no label in a command": ("", "command('f.csv')", "--label",
        "found = command('f.csv', 'CURE y')", "command('f.csv', LABEL)"),
    "semicolons in a command": ("FRAME.to_csv('g.csv', sep=';', index=False)",
        "command('g.csv', LABEL)", "--delimiter ';'", ",", "command('f.csv', LABEL)"),
    "tabs in a command": ("FRAME.to_csv('g.csv', sep='\\t', index=False)",
        "command('g.csv', LABEL)", "--format tsv", ",", "command('f.csv', LABEL)"),
    "decimals in a command": ("FRAME.to_csv('g.tsv', sep='	', decimal=',', index=False)",
        "command('g.tsv', LABEL)", "--decimal ,", ",", "command('f.csv', LABEL)"),
    "UTF-16 in a command": ("write('g.csv', CSV.encode('utf-16'))", "command('g.csv', LABEL)",
        "--encoding utf-16", ",", "command('f.csv', LABEL)"),
    "no header in a command": ("write('g.csv', CSV.split('\\n', 1)[1])", "command('g.csv', LABEL)",
        "--no-header",
        "found = command('g.csv', '--label 2 CURE').replace('labels    2', 'labels    y')",
        "command('f.csv', LABEL)"),
    "labels that are missing in a command": (
        "FRAME.assign(y=FRAME.y.mask(FRAME.a > 0.5)).to_csv('g.csv', index=False)",
        "command('g.csv', LABEL)", "--labels optional", ",",
        "command('g.csv', LABEL, '--labels optional')"),
    # ---- scikit-learn ----
    "one class": ("y = ['a'] * 60; model = Classifier(ridge())", "model.fit(X, y).predict(X)",
        "partial_fit(X, y)", "found = model.CURE.partial_fit(X, TOWNS).predict(X)",
        "Classifier(ridge()).partial_fit(A, ['a'] * 60).partial_fit(A, TOWNS).predict(A)"),
    "a new class": ("model = Classifier(ridge(), shuffle=False).fit(X[:9], SIGNS[:9] > 0)",
        "model.partial_fit(X, TOWNS).predict(X)", "begin with partial_fit",
        "model = Classifier(ridge())", "Classifier(ridge()).partial_fit(A, TOWNS).predict(A)"),
    "labels of two types": ("y = ['a', 1] * 30",
        "Classifier(ridge(), random_state=0).fit(X, y).predict(X)", "np.asarray(y).astype(str)",
        "y", "Classifier(ridge(), random_state=0).fit(A, ['a', '1'] * 30).predict(A)"),
    "OneVsRest within": ("learner = okl.OneVsRest(ridge(), [1, 2])",
        "Classifier(learner).fit(X, SIGNS).predict(X)", "pass its inner learner",
        "learner = learner.learner; found = Classifier(learner, random_state=0).fit(X, "
        "SIGNS).predict(X)", "Classifier(ridge(), random_state=0).fit(A, SIGNS).predict(A)"),
    "no intervals": ("model = Regressor(ridge(), shuffle=False).fit(X, y)",
        "model.predict(X, return_interval=True)[0]", "learner=okl.Intervals(okl.SelfTuning())",
        "model = Regressor(CURE, shuffle=False).fit(X, y)",
        "Regressor(shuffle=False).fit(A, Y).predict(A)"),
    # ---- river ----
    "a text in river": ("x = {'a': 'Rome'}; model = to_river(ridge(), task='regression')",
        "model.learn_one(x, 1.0)", "preprocessing.OneHotEncoder()",
        "model = CURE | model; model.learn_one(x, 1.0); found = model.predict_one(x)",
        "played(to_river(ridge(), task='regression'), [{'a': 1}], [1.0]).predict_one({'a': 1})"),
    "a gap in river": (
        "rows = [{'a': 2.0}, {'a': None}]; model = to_river(ridge(), task='regression')",
        "played(model, rows, [1.0, 1.0])", "preprocessing.StatImputer(('a', stats.Mean()))",
        "model = played(CURE | to_river(ridge(), task='regression'), rows, [1.0, 1.0]); found "
        "= model.predict_one(rows[1])",
        "played(to_river(ridge(), task='regression'), [{'a': 2.0}] * 2, [1.0] * "
        "2).predict_one({'a': 2.0})"),
    "NaN in river": (
        "rows = [{'a': 2.0}, {'a': np.nan}]; model = to_river(ridge(), task='regression')",
        "played(model, rows, [1.0, 1.0])", "pass None for it",
        "rows[1]['a'] = None; model = preprocessing.StatImputer(('a', stats.Mean())) | "
        "to_river(ridge(), task='regression'); "
        "found = played(model, rows, [1.0] * 2).predict_one(rows[1])",
        "played(to_river(ridge(), task='regression'), [{'a': 2.0}] * 2, [1.0] * "
        "2).predict_one({'a': 2.0})"),
    "a date in river": ("x = {'a': DAYS[1]}; model = to_river(ridge(), task='regression')",
        "model.learn_one(x, 1.0)", "such as the hour or the weekday",
        "x = {'a': x['a'].hour}; model.learn_one(x, 1.0); found = model.predict_one(x)",
        "ridge().partial_fit([[7]], [1]).predict_one([7])"),
    "a key to discard": ("x = {'a': 1.0, 'b': [2]}; model = to_river(ridge(), task='regression')",
        "model.learn_one(x, 1.0)", "compose.Discard('b')",
        "model = CURE | model; model.learn_one(x, 1.0); found = model.predict_one(x)",
        "played(to_river(ridge(), task='regression'), [{'a': 1.0}], [1.0]).predict_one({'a': "
        "1.0})"),
    "a new class in river": (
        "learner = ridge(); model = played(to_river(learner, classes=PAIR), [{'a': 1.0}], "
        "['Oslo'])", "model.learn_one({'a': 1.0}, 'Rome')", "to_river(learner, classes=[...])",
        "y = TOWNS; model = CURE; found = played(model, [{'a': 1.0}], "
        "['Rome']).predict_one({'a': 1.0})", "'Rome'"),
    "a fraction in river": ("", "played(to_river(ridge()), [{'a': 1.0}], [0.5])",
        "task='regression'",
        "found = played(to_river(ridge(), CURE), [{'a': 1.0}], [0.5]).predict_one({'a': 1.0})",
        "played(to_river(ridge(), task='regression'), [{'a': 1.0}], [0.5]).predict_one({'a': "
        "1.0})"),
    "a frame of labels in river": ("y, model = FRAME[['y']], to_river(ridge(), task='regression')",
        "model.learn_many(AB, y)", "y['y']",
        "y = CURE; model.learn_many(AB, y); found = model.predict_many(AB)", "named.predict(A)"),
    "a new key in river": ("learner = okl.PKAWV(TAYLOR); rows = [{'a': 1.0}, {'a': 1.0, 'z': 2.0}]",
        "played(to_river(learner, task='regression'), rows, [1.0, 2.0])", "0 for missing values",
        "rows[0]['z'] = 0.0; found = played(to_river(learner, task='regression'), rows, [1.0, "
        "2.0]).predict_one(rows[1])",
        "okl.PKAWV(TAYLOR).partial_fit([[1, 0], [1, 2]], [1, 2]).predict_one([1, 2])"),
}  # fmt: skip

SPELLED = {  # texts in a CSV, their numbers, the arguments of pandas.read_csv or of okl.stream
    "thousands": (["1,234", "12,000"], [1234.0, 12000.0], {"thousands": ","}),
    "thousands and parts": (["1,234.5", "2,000,000.25"], [1234.5, 2000000.25], {"thousands": ","}),
    "decimals": (["1,5", "0,25"], [1.5, 0.25], {"decimal": ","}),
    "three decimals": (["1,234", "0,5"], [1.234, 0.5], {"decimal": ","}),
    "points of thousands": (
        ["1.234,5", "2,25"],
        [1234.5, 2.25],
        {"decimal": ",", "thousands": "."},
    ),
}


def impute(X, cure):
    """Return a frame of which each column has gone through the two steps of a cure."""

    def apply(column):
        names, (first, second) = {"column": column, "np": np}, cure.split(" and ")
        exec(first, names)
        return eval(second, names)

    return X.apply(apply)


def regret(run, **options):
    """Return the regret in the end."""
    curve = run.regret(okl.Linear(), 1.0, **options)
    return np.round(curve[-1] if isinstance(curve, np.ndarray) else curve.prefix_penalised[-1], 9)


def write(name, content):
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)


def towned():
    """Return what was taught a town, as the cure of a text in a dict has it."""
    learner = ridge()
    okl.run(learner, okl.stream(MIXED.drop(columns="b"), label="y", encode=["town"]))
    return learner


def make_class():
    class Mine(okl.OGD):
        pass

    return Mine


def fill(text):
    for gap, value in FILLED.items():
        text = text.replace(gap, value)
    return text


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Return what the code of the rows may use; the table lies in f.csv and f.parquet."""
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("f.csv", index=False)
    FRAME.to_parquet("f.parquet")
    given = {"X": A.copy(), "y": Y.copy(), "learner": ridge(), "file": "run.npz", "found": None}
    models = {"model": ridge().partial_fit(A, Y), "named": ridge().partial_fit(AB, Y)}
    modules = {name.rpartition(".")[2]: import_module(name) for name in MODULES.split()}
    return globals() | modules | given | models | {"CSV": Path("f.csv").read_text()}


@pytest.mark.filterwarnings("ignore:(rows . to|Feather V1)")
@pytest.mark.parametrize("given, call, cure, cured, right", CASES.values(), ids=CASES)
def test_a_cure_works_and_gives_the_right_thing(given, call, cure, cured, right, names):
    exec(given, names)
    with pytest.raises((ValueError, UserWarning, OSError)) as refusal, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        eval(call, names)
    assert cure in str(refusal.value)
    cure = fill(cure)
    if cured == ",":
        argument = repr(cure) if cure.startswith("--") else cure
        cured = f"found = {call[:-1]}, {argument})"
    elif cured.isidentifier() and cured != "CURE":
        cured = f"{cured} = CURE"
    exec(cured.replace("CURE", cure), names)
    found = eval(call, names) if names["found"] is None else names["found"]
    assert_array_equal(found, eval(right, names))


@pytest.mark.parametrize("texts, numbers, cure", SPELLED.values(), ids=SPELLED)
def test_the_cure_of_numbers_written_in_another_way(texts, numbers, cure, tmp_path):
    path = tmp_path / "spelled.csv"
    path.write_text("a,y\n" + "".join(f'"{text}",{k}\n' for k, text in enumerate(texts)))
    with pytest.raises(ValueError, match="text, ") as refusal:
        okl.stream(path, label="y")
    said = str(refusal.value)
    named = {option for option in ("thousands", "decimal") if f"{option}='" in said}
    unclear = {"decimal"} if texts[0] == "1,234" and "," in texts[1][2:] else set()  # may be both
    assert named == {*cure} | unclear
    source, options = path, cure
    if "thousands" in cure:
        call = ", ".join(f"{option}='{mark}'" for option, mark in cure.items())
        assert f"pandas.read_csv(path, {call})" in said
        source, options = pd.read_csv(path, **cure), {}
    assert_array_equal(together(okl.stream(source, label="y", **options))[0][:, 0], numbers)


def test_a_column_of_dates_that_is_not_named_is_refused_by_the_file(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("day,y\n" + "2026-01-01,1\n" * 120_000 + "odd,1\n")
    with pytest.raises(ValueError, match="days.csv.*invalid value 'odd'"):
        okl.run(okl.OGD(), okl.stream(path, label="y"))


def test_inputs_that_are_no_real_numbers_have_a_cure():
    for X, words in ((np.eye(3) * 1j, "np.real"), (np.ones((3, 2), "m8[s]"), "np.timedelta64")):
        with pytest.raises(ValueError, match=words) as error:
            okl.OGD().partial_fit(X, np.ones(3))
        assert "encode" not in str(error.value)


def test_the_largest_integer_may_be_a_class():
    labels = [2**63 - 1, 3, 5]
    model = okl.interop.OnlineClassifier(okl.KRLS(okl.Linear()))
    model.partial_fit(np.eye(3), labels)
    assert model.predict(np.eye(3)).tolist() == labels


def test_names_may_be_a_series_of_polars(tmp_path):
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": ["p", "q"], "c": [0.0, 1.0], "y": [1.0, 2.0]})
    data = okl.stream(frame, label="y", drop=pl.Series(["b"]))
    assert data.columns == ("a", "c")


class NeedsALibrary(okl.OGD):
    """A learner of a user, whose library may be missing."""

    def _check_params(self):
        if NeedsALibrary.is_missing:
            import_module("library_that_is_missing")

    is_missing = False


def test_a_file_whose_class_needs_a_library_says_so(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    NeedsALibrary().save(path)
    monkeypatch.setattr(NeedsALibrary, "is_missing", True)
    message = "model.npz needs a library that is missing: .*library_that_is_missing"
    with pytest.raises(ImportError, match=message):
        okl.load(path, classes=[NeedsALibrary])


@pytest.mark.parametrize("labels", [{}, {"labels": "optional"}], ids=str)
def test_rows_of_which_some_labels_are_missing_are_for_a_learner_each(labels):
    Y = np.stack([np.arange(30.0), -np.arange(30.0)], axis=1)
    Y[::3, 1] = np.nan
    X = np.random.default_rng(0).random((30, 2))
    with pytest.raises(ValueError, match="play a learner for each$") as raised:
        okl.run(okl.MultiOutput(okl.LinearAWV()), X, Y, **labels)
    assert "optional" not in str(raised.value) and "leave out" not in str(raised.value)
    for y in Y.T:
        okl.run(okl.LinearAWV(), X, y, labels="optional")
