"""`learn` on many workers equals learning in one process; invalid arguments are refused."""

import gc
import pickle
import re
import socket
import time
from collections import Counter

import numpy as np
import pytest

from streamsel import (
    OSFS,
    PCA,
    SOSPCA,
    ForwardSelection,
    ProjSe,
    RandomProjection,
    Relatedness,
    RidgeComponents,
    SelectKBest,
    load,
    save,
)
from streamsel.distributed import PartError, learn
from streamsel.stream import (
    clean,
    iter_array,
    iter_csv,
    iter_files,
    iter_npy,
    iter_parquet,
)
from tests.conformance.modes import (
    COLUMN_MODES,
    bits,
    close,
    data,
    fresh,
    learnt,
    same,
    sample_modes,
)
from tests.distributed.parts import Made, N, made

pytest.importorskip("distributed")

MERGING = {
    name: mode
    for name, mode in COLUMN_MODES.items()
    if fresh(mode, data(mode)[1])._reason_not_partitioned() is None
}
APART = {name: mode for name, mode in COLUMN_MODES.items() if name not in MERGING}
NAMES = [f"v{j}" for j in range(160)]


def tasks_left(client):
    """Return the number of tasks that the scheduler still has, after time for cleaning up."""
    for _ in range(100):
        gc.collect()
        if not (left := client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))):
            return 0
        time.sleep(0.05)
    return left


def test_groups_given_as_a_function_are_refused_before_reading(client, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 60)), rng.normal(size=N)
    np.save(tmp_path / "X.npy", X)
    models = {}
    for groups in ({j: j % 2 for j in range(60)}, lambda j: j % 2):
        models[callable(groups)] = SelectKBest(60)
        relatedness = Relatedness.from_columns(X, groups)
        models[callable(groups)].learn_target(y, relatedness=relatedness)
    with pytest.raises(ValueError, match="whose groups were a function"):
        learn(models[True], iter_npy(tmp_path / "X.npy"), parts=3, client="no scheduler")
    learn(models[False], iter_npy(tmp_path / "X.npy"), parts=3, client=client)
    models[True].learn_columns(X)
    assert models[False].p_values == models[True].p_values


@pytest.mark.parametrize("cls", [ProjSe, PCA])
def test_observation_weights_apply_on_every_worker(client, cls, tmp_path):
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(40, 60)), rng.normal(size=40), rng.exponential(size=40)
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    model, expected = cls(2), cls(2)
    for one in (model, expected):
        one.learn_target(y if cls._is_supervised else None, weights=w)
    learn(model, iter_npy(tmp_path / "X.npy"), parts=3, client=client)
    expected.learn_columns(X)
    close(model.relevance, expected.relevance)
    if cls is PCA:
        np.testing.assert_allclose(model.embedding, expected.embedding, atol=1e-10)
    plain = cls(2)
    plain.learn_target(y if cls._is_supervised else None)
    plain.learn_columns(X)
    assert bits(plain) != bits(expected)


def by_hand(model, parts, fan_in):
    """Learn parts, and merge them in the same tree as the workers do."""
    level = []
    for part in parts:
        level.append(model.clone())
        level[-1].__setstate__(model.__getstate__())
        level[-1]._learn_part(part.open())
    for _ in range(2):
        groups = [level[i : i + fan_in] for i in range(0, len(level), fan_in)]
        for first, *others in groups:
            for other in others:
                first.merge(other)
        level = [group[0] for group in groups]
    for one in level:
        model.merge(one)
    return model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a matrix in files of several formats, and a target."""
    import pyarrow as pa
    import pyarrow.parquet

    path = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 160))
    table = pa.table([pa.array(x) for x in X.T], names=NAMES)
    pa.parquet.write_table(table, path / "x.parquet", row_group_size=20)
    pa.parquet.write_table(table.select(NAMES[:70]), path / "a.parquet")
    pa.parquet.write_table(table.select(NAMES[70:]), path / "b.parquet")
    np.save(path / "x.npy", X)
    with (path / "x.tsv").open("w") as file:
        file.writelines(
            "\t".join([name, *map(repr, x.tolist())]) + "\n"
            for name, x in zip(NAMES, X.T, strict=True)
        )
    return path, X, X[:, 3] - X[:, 150] + 0.1 * X[:, 77]


@pytest.mark.parametrize("mode", sample_modes(MERGING, "distributed").values(), ids=str)
def test_workers_equal_a_loop_over_parts(mode, client, tmp_path):
    X, y = data(mode)
    np.save(tmp_path / "x.npy", X)
    model, alongside = fresh(mode, y), fresh(mode, y)
    summary = learn(model, iter_npy(tmp_path / "x.npy"), client=client, parts=7, fan_in=2)
    assert (summary.n_parts, summary.n_read) == (7, 160)
    if model._needs_single_source:
        whole = learnt(mode, X, y)
        assert model.selected == whole.selected
        assert model.n_certified == whole.n_certified == len(model.selected)
    else:
        parts = iter_npy(tmp_path / "x.npy").split(7)
        assert bits(model) == bits(by_hand(alongside, parts, 2))


@pytest.mark.parametrize("kind", ["parquet", "npy", "tsv", "files"])
def test_files_of_every_format(kind, files, client):
    path, X, y = files
    source = {
        "parquet": lambda: iter_parquet(path / "x.parquet"),
        "npy": lambda: iter_npy(path / "x.npy", names=NAMES),
        "tsv": lambda: iter_csv(path / "x.tsv", orientation="variables", header=False),
        "files": lambda: iter_files([path / "a.parquet", path / "b.parquet"]),
    }[kind]()
    model, whole = SelectKBest(3), SelectKBest(3)
    summary = learn(model, source, y, client=client, parts=5, fan_in=2)
    assert (summary.n_parts, summary.n_read) == (len(source.split(5)), 160)
    assert summary.n_bytes > 0
    whole.learn_target(y)
    whole.learn_columns(X, NAMES)
    same(model, whole, in_parts=True)


def test_columns_excluded_by_clean_are_counted(files, client):
    _, X, y = files
    path = files[0] / "holes.npy"
    X = X.copy()
    X[:, [5, 80]], X[3, [7, 90, 150]] = 1.0, np.nan
    np.save(path, X)
    model, whole = SelectKBest(3), SelectKBest(3)
    summary = learn(
        model, clean(iter_npy(path), missing="mean"), y, client=client, parts=6, fan_in=2
    )
    alone = clean(iter_npy(path), missing="mean")
    whole.learn_target(y)
    whole.learn_columns(alone)
    same(model, whole, in_parts=True)
    assert summary.skipped == alone.skipped == Counter(constant=2)
    assert (summary.n_read, summary.n_filled) == (alone.n_read, alone.n_filled) == (160, 3)


@pytest.mark.parametrize(
    "parameters", [{}, {"max_candidates": 12}, {"max_candidates": 12, "exact": True}]
)
def test_exact_and_bounded_forward_selection(parameters, client):
    parts, X, y = made(9)
    model, whole = ForwardSelection(5, **parameters), ForwardSelection(5)
    learn(model, parts, y, client=client, fan_in=2)
    whole.learn_target(y)
    whole.learn_columns(X)
    if parameters.get("exact", True) and len(parameters) != 1:
        assert model.selected == whole.selected
    assert model.selected[: model.n_certified] == whole.selected[: model.n_certified]


def test_covariates(client):
    parts, X, y = made(6)
    age = X[:, 7] + X[:, 50]
    model, whole = SelectKBest(3), SelectKBest(3)
    learn(model, parts, y, covariates=age, client=client, fan_in=2)
    whole.learn_target(y, covariates=age)
    whole.learn_columns(X)
    same(model, whole, in_parts=True)


def test_without_a_target(client):
    parts, X, _ = made(6)
    model, whole = PCA(3), PCA(3)
    learn(model, parts, client=client, fan_in=2)
    whole.learn_columns(X)
    np.testing.assert_allclose(model.embedding, whole.embedding, atol=1e-9)
    projected = RandomProjection(3)
    learn(projected, parts, client=client, fan_in=2)
    assert projected.n_columns == X.shape[1]
    selected = ProjSe(3)
    selected.learn_target(None)
    learn(selected, parts, client=client, fan_in=2)
    assert len(selected.selected) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [SelectKBest(3), ForwardSelection(4, max_candidates=8), SOSPCA(2), RidgeComponents(2)]
)
def test_resumed_learning_is_bit_identical(model, client, tmp_path):
    parts, _, y = made(11)
    whole, first = model.clone(), model.clone()
    learn(whole, parts, y, client=client, fan_in=2)
    done = []

    def stop_after_two(model, summary):
        done.append(summary.n_parts)
        save(model, tmp_path / "model")
        if len(done) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        learn(first, parts, y, client=client, fan_in=2, on_block=stop_after_two)
    assert done == [4, 8]
    for rest in (first, load(tmp_path / "model")):
        summary = learn(rest, parts[8:], y, client=client, fan_in=2)
        assert summary.n_parts == 3
        assert bits(rest) == bits(whole)
    assert tasks_left(client) == 0


def test_bad_part_is_named(client):
    parts, _, y = made(9)
    for fault, what in {"missing": "No such file", "defect": "ZeroDivisionError"}.items():
        parts[5] = Made(5, fault=fault)
        model = SelectKBest(3)
        with pytest.raises(PartError, match=f"columns 100 to 119 of thin air: .*{what}"):
            learn(model, parts, y, client=client, fan_in=2, retries=0)
        assert model.n_columns == 80
    assert tasks_left(client) == 0


def test_a_bad_column_is_named_with_its_file(client, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 60))
    X[3, 44] = np.inf
    np.save(tmp_path / "bad.npy", X)
    model = SelectKBest(3)
    with pytest.raises(
        PartError, match=r"columns 40 to 59 of .*bad.npy: Expected finite .* column 44"
    ):
        learn(model, iter_npy(tmp_path / "bad.npy"), X[:, 0], parts=3, client=client, retries=0)
    assert model.n_columns == 0


def test_failed_part_is_retried(client, tmp_path):
    parts, X, y = made(5)
    parts[2] = Made(2, fault="missing", mended=str(tmp_path / "once"), once=True)
    model = SelectKBest(3)
    learn(model, parts, y, client=client, retries=1)
    assert model.n_columns == X.shape[1]


def test_a_column_in_two_parts_is_refused(client):
    parts, _, y = made(5)
    model = SelectKBest(3)
    with pytest.raises(ValueError, match="Expected models of different columns"):
        learn(model, [*parts, Made(1, width=21)], y, client=client)


def test_error_does_not_change_an_exact_model(client):
    parts, _, y = made(9)
    parts[8] = Made(8, fault="missing")
    model = ForwardSelection(3, exact=True, max_candidates=6)
    model.learn_target(y)
    before = bits(model)
    with pytest.raises(PartError):
        learn(model, parts, client=client, fan_in=2, retries=0)
    assert bits(model) == before


@pytest.mark.parametrize("mode", sample_modes(APART, "apart").values(), ids=str)
def test_learner_without_merge_is_refused_before_reading(mode):
    _, y = data(mode)
    model = fresh(mode, y)
    with pytest.raises(ValueError, match=r"merged from parts. Got: [\s\S]*Hint"):
        learn(model, [Made(0, fault="defect")], client="nowhere")


def refused():
    parts, X, y = made(2)
    fitted = SelectKBest(3)
    fitted.learn_target(y)
    fitted.learn_columns(X)
    on_rows = SelectKBest(3)
    on_rows.learn_one({"a": 1.0}, 2.0)
    exact = ForwardSelection(3, exact=True)
    exact.learn_target(y)
    exact.learn_columns(iter_array(X))
    model = SelectKBest(3)
    return {
        "no learner": (("model", parts, y), {}, "one of streamsel's learners. Got: str"),
        "no source": ((model, X, y), {}, "Got: ndarray"),
        "no parts": ((model, [1, 2], y), {}, "Got: list"),
        "a source in memory": ((model, iter_array(X), y), {}, "Expected a stream"),
        "parts of parts": ((model, parts, y), {"parts": 3}, "a list of parts. Got: 3"),
        "names": ((model, parts, y), {"names": ["a"]}, "names are for dask arrays"),
        "no target": ((model, parts), {}, "Expected a target"),
        "a needless target": ((PCA(2), parts, y), {}, "learns without one"),
        "another target": ((fitted, parts, y[::-1]), {}, "Got: another"),
        "rows": ((on_rows, parts, y), {}, "the model has learnt rows"),
        "a second source": ((exact, parts), {}, "Expected one source"),
        "decided": ((OSFS(), parts, y), {}, "OSFS"),
        "fan_in": ((model, parts, y), {"fan_in": 1}, "fan_in"),
        "retries": ((model, parts, y), {"retries": -1}, "retries"),
        "client": ((model, parts, y), {"client": 3}, "Client, the address of a scheduler, or None"),
    }


REFUSED = refused()


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_arguments_are_refused(case):
    arguments, further, message = REFUSED[case]
    before = pickle.dumps(arguments[0])
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        learn(*arguments, **{"client": "nowhere"} | further)
    if "client" not in further:
        assert pickle.dumps(arguments[0]) == before


@pytest.mark.parametrize("kind", ["nobody", "silent", "no address"])
def test_unreachable_scheduler(kind):
    import dask

    parts, _, y = made(2)
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        if kind == "silent":
            port.listen()
        where = "no address" if kind == "no address" else f"127.0.0.1:{port.getsockname()[1]}"
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
            pytest.raises(ConnectionError, match=f"a Dask scheduler at {where}. Got: .*\nHint"),
        ):
            learn(SelectKBest(3), parts, y, client=where)


@pytest.mark.slow
def test_results_are_released_after_use(client):
    parts, _, y = made(40)
    most = []
    learn(
        SelectKBest(3),
        parts,
        y,
        client=client,
        fan_in=2,
        on_block=lambda *_: most.append(
            client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        ),
    )
    # Two threads: two waves in flight, each of four parts and three merges, and their shared data.
    assert max(most) <= 2 * 7 + 2
    assert tasks_left(client) == 0


def test_loadings_are_learnt_in_parts(client):
    parts, X, _ = made(9)
    model, whole = PCA(2, max_loadings=10), PCA(2, max_loadings=10)
    learn(model, parts, client=client, fan_in=2, loadings=True)
    whole.learn_columns(X)
    whole.learn_loadings(X)
    assert model.loadings.keys() == whole.loadings.keys()
    assert (model.n_passes, model._wants_second_pass) == (2, False)
    with pytest.raises(ValueError, match="Expected loadings=False"):
        learn(model, parts, client="nowhere", loadings=True)
