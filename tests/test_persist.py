"""Model files: round trips, and refused contents."""

import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.linear_model import LinearRegression
from river.preprocessing import StandardScaler

from streamsel import (
    MRMR,
    SOSPCA,
    ForwardSelection,
    History,
    Lasso,
    ProjSe,
    SelectKBest,
    load,
    registry,
    save,
)
from streamsel.base.guard import SingleThreadGuard
from streamsel.serialization import archive

QUICK = settings(derandomize=True, deadline=None, max_examples=100)


class Shelf:
    """Minimal learner with an arbitrary state, for values that real learners rarely have."""

    def __init__(self, label="none"):
        self.label = label
        self.state = {}
        self._guard = SingleThreadGuard()

    def _get_params(self):
        return {"label": self.label}

    def _get_state(self):
        return self.state

    def _set_state(self, state):
        self.state = state

    def _check_reachable_state(self):
        pass


@pytest.fixture(autouse=True)
def registered_shelf(monkeypatch):
    entry = registry.Entry("Shelf", __name__, "selector", "holds what it is given")
    monkeypatch.setattr(registry, "LEARNERS", (*registry.LEARNERS, entry))


def shelf(**state):
    model = Shelf()
    model.state = state
    return model


def round_trip(model, path):
    save(model, path)
    return load(path)


NAMES = st.recursive(
    st.one_of(
        st.text(st.characters(exclude_categories=())),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.none(),
    ),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


def exactly(value):
    """Return a value with the types of all its parts: 1, 1.0 and True differ, NaN equals itself."""
    if isinstance(value, list | tuple):
        return type(value), [exactly(item) for item in value]
    if isinstance(value, dict):
        return dict, [(exactly(key), exactly(item)) for key, item in value.items()]
    return type(value), repr(value)


@QUICK
@given(st.lists(NAMES, max_size=12))
def test_names_are_restored_with_their_types(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("names") / "model"
    assert exactly(round_trip(shelf(names=names), path).state["names"]) == exactly(names)


@pytest.mark.parametrize(
    "names",
    [
        ["\ud83d", "\ude00", "\ud83d\ude00", "\U0001f600", "\udcff"],
        [1, True, 1.0, "1", None, "None", (), (1,), (True,), ((1.0,),)],
        [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 5e-324, 1.7e308, 0.1],
        [10**400, -(2**63), 2**64],
        [("a", 1), (), ("b", None, True)],
        [("a", 1.0), (float("inf"), ("deep",))],
        [("\ud83d", "\ude00"), ("\ud83d\ude00",)],
        ["", "\0", "\n", '"', "\\", "{}", "array", {"array": "names.npy"}, {"tuple": [1]}],
    ],
)
def test_awkward_names(tmp_path, names):
    twin = round_trip(shelf(names=names, other={"a": [names]}), tmp_path / "model")
    assert exactly(twin.state["names"]) == exactly(names)
    assert exactly(twin.state["other"]) == exactly({"a": [names]})


def test_numpy_scalars_are_stored_as_python_values(tmp_path):
    names = [np.int64(3), np.float64(0.5), np.str_("a"), np.bool_(True), (np.float32(0.1),)]
    twin = round_trip(shelf(names=names), tmp_path / "model")
    assert exactly(twin.state["names"]) == exactly([3, 0.5, "a", True, (float(np.float32(0.1)),)])


@pytest.mark.parametrize(
    "name",
    [b"bytes", frozenset({1}), 1 + 2j, np.datetime64("2020-01-01"), object(), range(3), Shelf, ...],
)
def test_unsupported_names_are_refused(tmp_path, name):
    path = tmp_path / "model"
    path.write_text("what was there")
    with pytest.raises(TypeError) as info:
        save(shelf(names=["good", (name,)]), path)
    assert repr(name) in str(info.value)
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", [str, int, lambda j: (j, "word")])
def test_very_many_names(tmp_path, kind):
    names = [kind(j) for j in range(200_000)]
    assert round_trip(shelf(names=names), tmp_path / "model").state["names"] == names


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12)[::2],
        np.array(3.5),
        np.empty((0, 4)),
        np.array([np.nan, np.inf, -0.0, 5e-324]),
        np.array([True, False]),
        np.arange(3, dtype=np.float32),
        np.arange(3, dtype=np.uint8),
        np.arange(3, dtype=">i4"),
    ],
)
def test_arrays_are_restored(tmp_path, array):
    twin = round_trip(shelf(a=array), tmp_path / "model").state["a"]
    np.testing.assert_array_equal(twin, array)
    assert twin.shape == array.shape
    assert twin.dtype == array.dtype.newbyteorder("=")
    assert twin.flags.writeable
    assert twin.dtype.isnative


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.array(["a"]), np.zeros(2, "datetime64[D]")]
)
def test_arrays_that_are_not_numbers_are_refused(tmp_path, array):
    with pytest.raises(TypeError, match="numeric"):
        save(shelf(a=array), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_arrays_deep_in_the_state(tmp_path):
    state = {
        "table": {"slots": ["a", ("b", 1)], "m2": np.arange(2.0), "B": {"deep": np.eye(2)}},
        "lists": [np.arange(3), (np.arange(4), "x")],
        "a/b": np.ones(1),
        "a": {"b": np.ones(2), 3: np.ones(3), "3": np.ones(4)},
    }
    twin = round_trip(shelf(**state), tmp_path / "model").state
    np.testing.assert_equal(twin, state)
    assert twin["table"]["slots"] == ["a", ("b", 1)]
    with pytest.raises(TypeError):
        save(shelf(), tmp_path / "model", metadata={"array": np.arange(3)})


@pytest.mark.parametrize("learner", [ForwardSelection(k=3), MRMR(k=3), Lasso(k=3)], ids=str)
def test_complete_pools_are_restored(tmp_path, learner):
    # More than twice the limit of a pruned pool: observations of all columns fit into memory.
    X = np.random.default_rng(0).normal(size=(40, 3_000))
    learner.learn_target(X[:, 7] + X[:, 70])
    learner.learn_columns(X)
    save(learner, tmp_path / "model")
    back = load(tmp_path / "model")
    assert back.selected == learner.selected
    assert back.n_certified == len(learner.selected)
    back.learn_columns(-X[:, :9], range(3_000, 3_009))
    assert back.n_columns == 3_009


def test_metadata_are_restored(tmp_path):
    path = tmp_path / "model"
    notes = {"source": "a.parquet", "rows": (1, 2.5), 3: [None, True], ("a", 1): {"deep": {}}}
    save(shelf(), path, metadata=notes)
    assert exactly(archive.read_metadata(path)) == exactly(notes)
    save(shelf(), path)
    assert archive.read_metadata(path) is None
    with pytest.raises(TypeError):
        save(shelf(), path, metadata={"when": object()})


def test_numpy_can_read_the_arrays(tmp_path):
    save(shelf(weights=np.arange(3.0), names=["a"]), tmp_path / "model")
    with np.load(tmp_path / "model", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["weights"], np.arange(3.0))
        header = json.loads(archive["header.json"])
    assert header["format"] == "streamsel"
    assert header["class"] == "Shelf"


def test_a_history_is_not_saved_but_its_learner(tmp_path):
    with pytest.raises(TypeError, match=r"save\(model.learner, path\)"):
        save(History(ProjSe(k=1)), tmp_path / "model")
    with pytest.raises(TypeError, match=r"save\(model\['History'\].learner, path\)"):
        save(History(ProjSe(k=1)) | LinearRegression(), tmp_path / "model")


@pytest.mark.parametrize("thing", [None, "model", {"a": 1}, SOSPCA, object()])
def test_other_objects_are_refused(tmp_path, thing):
    with pytest.raises(TypeError, match="Expected one of streamsel's learners"):
        save(thing, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_third_party_learners_are_refused(tmp_path):
    class Mine(SOSPCA):
        pass

    with pytest.raises(TypeError, match="Mine"):
        save(Mine(), tmp_path / "model")


def test_hints_about_pipelines_work(tmp_path):
    """The hints work: a saved learner in a new pipeline, and a pickle of the old pipeline."""
    rng = np.random.default_rng(0)
    rows = [dict(enumerate(x)) for x in rng.normal(size=(60, 5)).tolist()]
    model = ProjSe(k=2) | StandardScaler() | LinearRegression()
    for x in rows[:40]:
        model.learn_one(x, x[1] - x[3])
    union = ProjSe(k=2) + StandardScaler()
    for host in (model, union):
        with pytest.raises(TypeError, match=r"Hint: save\(model\['ProjSe'\], path\)") as refused:
            save(host, tmp_path / "model")
        assert "river.compose" in str(refused.value)
    with pytest.raises(TypeError) as refused:
        save(StandardScaler() | LinearRegression(), tmp_path / "model")
    assert "Hint" not in str(refused.value)
    assert len(str(refused.value)) < 150
    assert not list(tmp_path.iterdir())

    save(model["ProjSe"], tmp_path / "model")
    rebuilt = load(tmp_path / "model") | model["StandardScaler"] | model["LinearRegression"]
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    for x in rows[40:]:
        assert model.predict_one(x) == rebuilt.predict_one(x) == copy.predict_one(x)
    for x in rows[40:]:
        for each in (model["ProjSe"], rebuilt["ProjSe"], copy["ProjSe"]):
            each.learn_one(x, x[1] - x[3])
    assert model["ProjSe"].scores == rebuilt["ProjSe"].scores == copy["ProjSe"].scores


# ------------------------------------------------------------------------------ writing files


def test_files_are_replaced_atomically(tmp_path, monkeypatch):
    path = tmp_path / "model"
    save(shelf(names=["old"]), path)

    def full(file):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(archive.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            save(shelf(names=["new"]), path)
    assert load(path).state == {"names": ["old"]}
    assert list(tmp_path.iterdir()) == [path]


def test_interrupted_saves_leave_no_temporary_files(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(archive, "_seal", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(shelf(a=np.arange(3)), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_files_have_the_usual_permissions(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    save(shelf(), tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode == plain.stat().st_mode


def test_links_are_kept(tmp_path):
    (tmp_path / "data").mkdir()
    link = tmp_path / "model"
    link.symlink_to(tmp_path / "data" / "real")
    save(shelf(), link)
    assert link.is_symlink()
    assert (tmp_path / "data" / "real").is_file()


def test_paths_may_be_strings(tmp_path):
    save(shelf(), os.fspath(tmp_path / "model"))
    assert load(os.fspath(tmp_path / "model")).state == {}


def test_missing_files_and_directories(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        save(shelf(), tmp_path / "nowhere" / "model")
    with pytest.raises(OSError, match="directory"):
        load(tmp_path)
    with pytest.raises(OSError, match="directory"):
        save(shelf(), tmp_path)


# --------------------------------------------------------------------- refused contents


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good"
    save(shelf(values=np.arange(6.0), names=["a", ("b", 1)], count=3), path, metadata={"n": 1})
    return path.read_bytes()


@pytest.fixture
def refuses(tmp_path):
    """Return a function that passes bytes to load and read_metadata, and returns the error."""

    def offer(content, *, loading_only=False):
        path = tmp_path / "offered"
        path.write_bytes(content)
        with pytest.raises(ValueError) as info:
            load(path)
        assert "offered" in str(info.value)
        if not loading_only:
            with pytest.raises(ValueError):
                archive.read_metadata(path)
        return str(info.value)

    return offer


def test_a_file_cut_short_anywhere(good, refuses):
    for size in range(len(good)):
        refuses(good[:size])


def test_a_file_with_any_byte_changed(good, refuses):
    for at in range(len(good)):
        for flip in (0x01, 0xFF):
            changed = bytearray(good)
            changed[at] ^= flip
            refuses(bytes(changed))


def test_a_file_with_bytes_added(good, refuses):
    refuses(good + b"\0")
    refuses(b"\0" + good)
    refuses(good + good)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes"),
        (b"P", "1 bytes"),
        (b"PK\x03\x04", "checksum"),
        (b"name,1,2,3\n", "begins with"),
        (pickle.dumps(Evil()), "pickle"),
        (b"\x93NUMPY\x01\x00", "begins with"),
        (b"PAR1" * 20, "begins with"),
        (b"\x1f\x8b\x08\x00" * 20, "begins with"),
        (b"PK\x05\x06" + bytes(18), "begins with"),
    ],
)
def test_foreign_files(tmp_path, monkeypatch, refuses, content, message):
    monkeypatch.chdir(tmp_path)
    assert message in refuses(content)
    assert not (tmp_path / "executed").exists()


def test_other_archives_are_refused(refuses):
    for write in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        write(file, a=np.arange(3))
        assert "another program" in refuses(file.getvalue())


HEADER = {
    "format": "streamsel",
    "version": archive.VERSION,
    "class": "Shelf",
    "params": {"dict": []},
    "state": {},
    "metadata": None,
}


def forge(header=HEADER, entries=(), *, compression=zipfile.ZIP_STORED, tamper=None):
    """Return a file with a valid checksum and any contents, as an attacker could make it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        if header is not None:
            text = header if isinstance(header, bytes | str) else json.dumps(header)
            archive.writestr("header.json", text)
        for name, content in entries:
            archive.writestr(name, content)
        archive.comment = b"streamsel sha256 " + b"0" * 64
    content = file.getvalue()[:-64]
    if tamper is not None:
        content = tamper(content)
    return content + hashlib.sha256(content).hexdigest().encode()


def array_entry(array=None, *, header=None, body=b""):
    file = io.BytesIO()
    if array is not None:
        np.lib.format.write_array(file, array)
    else:
        text = (header + "\n").encode()
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body)
    return file.getvalue()


def test_valid_forged_files_are_read(tmp_path):
    """A forged file with valid contents is loaded; otherwise the refusals would prove nothing."""
    header = {**HEADER, "state": {"a": {"array": "a.npy"}}}
    (tmp_path / "forged").write_bytes(forge(header, [("a.npy", array_entry(np.arange(3.0)))]))
    np.testing.assert_array_equal(load(tmp_path / "forged").state["a"], np.arange(3.0))


def test_files_without_header_are_refused(refuses):
    assert "no header.json" in refuses(forge(None, [("a.npy", array_entry(np.arange(3.0)))]))


def changed(**fields):
    return {**HEADER, **fields}


def without(field):
    return {key: value for key, value in HEADER.items() if key != field}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (changed(version=0), "older"),
        (changed(version=archive.VERSION + 1), "newer"),
        (changed(version=10**9), "newer"),
        (changed(version=0), "version"),
        (changed(version=-1), "version"),
        (changed(version="1"), "version"),
        (changed(version=1.0), "version"),
        (changed(version=True), "version"),
        (changed(version=None), "version"),
        (changed(format="other"), "not a file written by streamsel"),
        ({"version": archive.VERSION + 1, "format": "streamsel", "novelty": 1}, "newer"),
        ({}, "not a file written by streamsel"),
        ([], "not a file written by streamsel"),
        (b"", "laid out"),
        (b"{", "laid out"),
        (b"\xff\xfe\xfd", "laid out"),
        (b"[" * 100_000, "laid out"),
        (b'{"format": "streamsel", "version": NaN}', "laid out"),
        (changed(more=1), "more"),
        (without("state"), "state"),
        (without("params"), "params"),
        (without("metadata"), "metadata"),
        (changed(state=[]), "state"),
        (changed(state=None), "state"),
        (changed(**{"class": "Popen"}), "Popen"),
        (changed(**{"class": "subprocess.Popen"}), "subprocess.Popen"),
        (changed(**{"class": "ColumnStream"}), "ColumnStream"),
        (changed(**{"class": "load"}), "'load'"),
        (changed(**{"class": "__doc__"}), "__doc__"),
        (changed(**{"class": None}), "None"),
        (changed(**{"class": ["Shelf"]}), "Shelf"),
    ],
)
def test_headers(refuses, header, message):
    assert message in refuses(forge(header))


@pytest.mark.parametrize(
    "fields",
    [
        {"params": {"dict": [["no_such_parameter", 1]]}},
        {"params": {"dict": [[1, 1]]}},
        {"params": {"dict": [["label"]]}},
        {"params": [1]},
        {"params": None},
        {"params": {"object": "x"}},
        {"state": {"a": {"array": "b.npy"}}},
        {"state": {"a": {"array": "a.npy", "b": 1}}},
        {"state": {"a": {"array": ["a.npy"]}}},
        {"params": {"dict": [["label", {"array": "a.npy"}]]}},
        {"state": {"a": {"pickle": "gASV"}}},
        {"state": {"a": {}}},
        {"state": {"a": {"tuple": 3}}},
        {"state": {"a": {"float": "one"}}},
        {"state": {"a": {"dict": [[{"dict": []}, 1]]}}},
    ],
)
def test_values_of_headers(refuses, fields):
    refuses(forge(changed(**fields)), loading_only=True)


def test_invalid_metadata_are_refused(tmp_path):
    (tmp_path / "forged").write_bytes(forge(changed(metadata={"pickle": "gASV"})))
    with pytest.raises(ValueError, match="metadata"):
        archive.read_metadata(tmp_path / "forged")


def bomb_header(shape, descr="'<f8'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    "entry",
    [
        array_entry(header=bomb_header("(1000000000000,)"), body=bytes(8)),
        array_entry(header=bomb_header("(2, 2)"), body=bytes(8)),
        array_entry(header=bomb_header("(1,)"), body=bytes(16)),
        array_entry(header=bomb_header("(0, 10**30)"), body=b""),
        array_entry(header=bomb_header(f"(0, {10**30})"), body=b""),
        array_entry(header=bomb_header("(-1, -1)"), body=bytes(8)),
        array_entry(header=bomb_header("(1,)", "'|O'"), body=bytes(8)),
        array_entry(header=bomb_header("(1,)", "'<U2'"), body=bytes(8)),
        array_entry(header=bomb_header("(1,)", "'<M8[s]'"), body=bytes(8)),
        array_entry(header=bomb_header("(1,)", "[('a', '<f8')]"), body=bytes(8)),
        array_entry(header=bomb_header("(1,)", "'<f16'"), body=bytes(16)),
        array_entry(header="(" * 9000, body=bytes(8)),
        array_entry(header="__import__('os').mkdir('executed')", body=bytes(8)),
        b"\x93NUMPY\x03\x00" + bytes(20),
        b"\x93NUMPY",
        b"",
        pickle.dumps(Evil()),
    ],
)
def test_invalid_arrays_are_refused(tmp_path, monkeypatch, refuses, entry):
    monkeypatch.chdir(tmp_path)
    forged = forge(changed(state={"a": {"array": "a.npy"}}), [("a.npy", entry)])
    refuses(forged, loading_only=True)
    assert not (tmp_path / "executed").exists()


def test_unexpected_entries_are_refused(refuses):
    array = array_entry(np.arange(3.0))
    assert "a.npy" in refuses(forge(HEADER, [("a.npy", array)]), loading_only=True)
    assert "b.npy" in refuses(forge(HEADER, [("../b.npy", array)]), loading_only=True)
    refuses(forge(HEADER, [("text", b"x")]), loading_only=True)
    missing = forge(changed(state={"a": {"array": "a.npy"}}))
    assert "a.npy" in refuses(missing, loading_only=True)
    twice = changed(state={"a": {"array": "a.npy"}, "b": {"array": "a.npy"}})
    assert "a.npy" in refuses(forge(twice, [("a.npy", array)]), loading_only=True)
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = forge(HEADER, [("header.json", json.dumps(HEADER))])
    refuses(twice)


def test_decompression_bombs_are_refused(refuses):
    state = {"a": {"array": "a.npy"}}
    bomb = array_entry(np.zeros(1 << 20))
    packed = forge(changed(state=state), [("a.npy", bomb)], compression=zipfile.ZIP_DEFLATED)
    assert len(packed) < 20_000
    assert "compressed" in refuses(packed)

    def larger(content):
        """Change the directory so that the stored array has 4 GB."""
        at = content.rindex(b"PK\x01\x02")
        huge = (0xFFFFFFF0).to_bytes(4, "little")
        return content[: at + 20] + huge + huge + content[at + 28 :]

    entry = array_entry(np.arange(3.0))
    refuses(forge(changed(state=state), [("a.npy", entry)], tamper=larger))


@pytest.mark.parametrize("learner", [ProjSe, SelectKBest])
def test_models_with_constant_variables_are_restored(learner, tmp_path):
    model = learner(k=2)
    for row, label in enumerate("xxy"):
        model.learn_one({"varies": float(row), "flat": 2.0}, label)
        save(model, tmp_path / "model")
        assert load(tmp_path / "model").relevance == pytest.approx(model.relevance, nan_ok=True)


def test_fully_explained_columns_are_restored(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = ProjSe(k=2)
    model.learn_target(X @ [1.0, 2.0, 3.0], covariates=X[:, 0])
    model.learn_columns(X)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").selected == model.selected
