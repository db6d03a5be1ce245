"""`streamsel.select` and `streamsel.extract` give the results of the learner."""

import pickle
import re
import shlex
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from bed_reader import to_bed

import streamsel
from streamsel.stream import iter_array, iter_columns, iter_files
from tests.page.reading import read

N, P = 80, 30

# The identifiers of the table below cannot be used.
pytestmark = pytest.mark.filterwarnings(r"ignore:1 of .* could not be used \(1 text\). 'id'")


@pytest.fixture(scope="module")
def table():
    """Return a frame of numbers, with a target, a label, an identifier and a covariate."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, P)), columns=[f"v{j}" for j in range(P)])
    frame["age"] = rng.integers(20, 80, N)
    frame["y"] = frame.v3 - frame.v7 + 0.05 * frame.age + 0.5 * rng.normal(size=N)
    frame["label"] = np.where(frame.y > frame.y.median(), "high", "low")
    frame.insert(0, "id", [f"s{i}" for i in range(N)])
    return frame


def learnt(model, X, y, names=None, covariates=None, weights=None):
    model.learn_target(y, covariates, weights)
    model.learn_columns(X, names)
    return model


def variables(table):
    return table[[f"v{j}" for j in range(P)]]


class TestSources:
    """The selection equals that of the learner, for any source of columns."""

    @pytest.fixture
    def expected(self, table):
        return learnt(streamsel.ForwardSelection(k=4), variables(table), table.label).selected

    @pytest.mark.parametrize(
        "kind", ["pandas", "polars", "arrow", "csv", "parquet", "array", "sparse", "stream"]
    )
    def test_sources_of_all_kinds(self, table, expected, kind, tmp_path):
        X, y = table.drop(columns=["y", "age"]), "label"
        if kind in ("polars", "arrow"):
            X = pl.from_pandas(X) if kind == "polars" else pa.Table.from_pandas(X)
        elif kind in ("csv", "parquet"):
            path = tmp_path / f"x.{kind}"
            X.to_csv(path, index=False) if kind == "csv" else X.to_parquet(path)
            X = path
        elif kind != "pandas":
            values, y = variables(table).to_numpy(), table.label
            X = scipy.sparse.csc_array(values) if kind == "sparse" else values
            X = iter_array(values, [*variables(table)]) if kind == "stream" else X
        result = streamsel.select(X, y, k=4)
        assert [
            name if isinstance(name, str) else f"v{name}" for name in result.selected
        ] == expected
        rows = np.asarray(result.transform())
        np.testing.assert_allclose(rows, table[expected].to_numpy(), rtol=1e-12)

    def test_anndata_sources(self, table, expected):
        anndata = pytest.importorskip("anndata")
        named = table.set_index("id")
        cells = anndata.AnnData(variables(named), obs=named[["label"]])
        result = streamsel.select(cells, "label", k=4)
        assert result.selected == expected
        np.testing.assert_allclose(result.transform(cells), table[expected], rtol=1e-6)

    def test_rows_of_frames_are_frames(self, table):
        result = streamsel.select(table, "y", k=3, drop=["label"])
        assert isinstance(result.transform(), pd.DataFrame)
        other = pl.from_pandas(table.head(5))
        assert result.transform(other).columns == result.selected
        components = streamsel.extract(table, "y", 2)
        assert list(components.transform(table).columns) == components.components

    def test_rows_of_a_file(self, table, tmp_path):
        result = streamsel.select(table, "y", k=3, drop=["age", "label"])
        table.head(9).to_parquet(tmp_path / "new.parquet")
        found = result.transform(str(tmp_path / "new.parquet"))
        np.testing.assert_array_equal(found, table[result.selected].head(9))

    def test_a_source_of_one_pass(self, table):
        X = variables(table)
        columns = iter_columns((name, X[name].to_numpy()) for name in X)
        result = streamsel.select(columns, table.y, k=3)
        assert result.selected == streamsel.select(X, table.y, k=3).selected
        with pytest.raises(ValueError, match="could be read only once"):
            result.transform()
        assert "3 of 30" in read(result.report()).text
        assert result.transform(X).shape == (N, 3)

    def test_a_generator_that_has_been_read(self, table):
        X, model = variables(table), streamsel.SelectKBest(k=2)
        model.learn_target(table.y)
        pairs = ((name, X[name].to_numpy()) for name in X)
        model.learn_columns(pairs)
        model.learn_columns(pairs)
        assert model.n_columns == P
        again = model.clone()
        again.learn_target(table.y)
        learn = again.learn_columns, lambda columns: streamsel.select(columns, table.y)
        for refused in learn:
            with pytest.raises(ValueError, match=r"at least one column\. Got: none\.\nHint: a"):
                refused(pairs)
        # Constant columns were read, although they are skipped.
        again.learn_columns(streamsel.stream.clean(iter([("flat", np.ones(N))])))
        assert again.n_columns == 0

    def test_ambiguous_texts_are_oriented_by_the_target_name(self, table, tmp_path):
        """In a text with ambiguous first cells the target's name determines the orientation."""
        numbers = table[[f"v{j % P}" for j in range(250)]].set_axis([*range(250)], axis=1)
        X = pd.concat([table.id, numbers.add_prefix("x"), table.label], axis=1)
        X.to_csv(tmp_path / "x.csv", index=False)
        result = streamsel.select(tmp_path / "x.csv", "label", k=2)
        assert result.selected == streamsel.select(X, "label", k=2).selected
        assert result.transform(tmp_path / "x.csv").shape == (N, 2)
        with pytest.raises(ValueError, match=r"may be either, and has no column 'lable'\."):
            streamsel.select(tmp_path / "x.csv", "lable")

    def test_a_real_file(self, dataset, tmp_path):
        X, y, _, archive = dataset("leukemia_golub3571")
        frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
        frame["type"] = archive["classes"][y]
        frame.to_parquet(tmp_path / "genes.parquet")
        result = streamsel.select(tmp_path / "genes.parquet", "type", k=5, max_candidates=20)
        whole = learnt(streamsel.ForwardSelection(k=5), X.astype(float), y, [*frame.columns[:-1]])
        assert result.selected == whole.selected
        assert result.model.n_certified == 5


class TestRoles:
    """Target, covariates, weights and identifiers, by name or by value."""

    def test_special_columns_are_not_candidates(self, table):
        result = streamsel.select(table, "y", k="all", method="SelectKBest", drop=["id", "label"])
        assert {*result.selected} == {*variables(table), "age"}
        table = table.assign(w=table.v0.abs())
        result = streamsel.select(table, "label", covariates="age", weights="w", k=40, drop=["y"])
        assert not {*result.selected} & {"label", "age", "w", "y", "id"}

    @pytest.mark.parametrize("by_name", [False, True])
    def test_covariates_and_weights(self, table, by_name):
        X = variables(table)
        weights = table.v0.abs()
        expected = learnt(
            streamsel.SelectKBest(k=5), X, table.y, None, table[["age"]], weights.to_numpy()
        )
        if by_name:
            given = {"covariates": ["age"], "weights": "w"}
            X = X.assign(age=table.age, y=table.y, w=weights)
        else:
            given = {"covariates": table[["age"]], "weights": weights}
        y = "y" if by_name else table.y
        result = streamsel.select(X, y, k=5, method="SelectKBest", **given)
        assert result.model.relevance == pytest.approx(expected.relevance)
        assert (result.model.covariates == ("age",)) is by_name

    def test_lists_of_labels_are_not_names(self, table):
        X = variables(table).rename(columns={"v0": "high", "v1": "low"})
        result = streamsel.select(X.head(2 * P), [*table.label][: 2 * P], k=2)
        assert result.model.report().target.startswith("2 classes")

    def test_names_that_are_numbers(self, table):
        X = np.column_stack([table.y, variables(table)])
        found = streamsel.select(X, 0, k=3).selected
        expected = learnt(streamsel.ForwardSelection(k=3), variables(table), table.y).selected
        assert [f"v{j - 1}" for j in found] == expected
        assert streamsel.select(pd.DataFrame(X), 0, k=3).selected == found

    def test_categories_keep_their_names(self, table):
        X = table.assign(label=table.label.astype("category"))
        assert streamsel.select(X, "label", k=1).model.report().class_sizes == {
            "high": N // 2,
            "low": N // 2,
        }

    @pytest.mark.parametrize("role", ["y", "covariates", "weights", "drop"])
    @pytest.mark.parametrize("kind", ["frame", "file", "array"])
    def test_unknown_names(self, table, role, kind, tmp_path):
        X = table
        if kind == "file":
            X = tmp_path / "x.parquet"
            table.to_parquet(X)
        elif kind == "array":
            X = variables(table).to_numpy()
        given = {"y": table.y, role: ["labels"] if role == "drop" else "labels"}
        with pytest.raises(
            ValueError, match=f"Expected {role} to name columns of X. Got: 'labels'"
        ) as refused:
            streamsel.select(X, **given)
        hint = "its columns are 0, 1" if kind == "array" else "did you mean 'label'"
        assert f"\nHint: {hint}" in str(refused.value)


class TestMissing:
    """Columns and rows that cannot be used."""

    def test_columns_are_skipped_with_a_warning(self, table):
        X = table.assign(v5=table.v5.where(table.v5 > 0), flat=1.0)
        with pytest.warns(
            UserWarning, match=r"2 of 35 columns after encoding .* \(1 missing, 1 text\)"
        ) as caught:
            result = streamsel.select(X, "y", k=3)
        text = str(caught[0].message)
        assert "'id' (more than 40 categories in 80 rows, such as 's0'); 'v5' (" in text
        assert "missing='mean'" in text
        assert "drop=[...]" in text
        assert "flat" not in text
        assert result.skipped == {"missing": 1, "constant": 1, "text": 1}
        with pytest.raises(ValueError, match="Expected finite numbers in column 'v5'"):
            streamsel.select(X.drop(columns=["id", "label"]), "y", missing="error")

    def test_the_hint_fits_the_reason(self, table):
        X = variables(table).astype({"v1": object})
        X.loc[3, "v1"] = "<0.01"
        with pytest.warns(UserWarning, match=r"\(1 mixed\): 'v1' \('<0.01' in row 3") as caught:
            streamsel.select(X, table.y, k=3)
        text = str(caught[0].message)
        assert "Hint: replace cells that are not numbers" in text
        assert "missing='mean'" not in text

    def test_the_hint_lists_columns_that_are_too_many_to_name(self, table, capsys):
        X = variables(table).copy()
        X.iloc[0, :7] = np.nan
        with pytest.warns(UserWarning, match=r"'v4' \(.*; and 2 more\.\n") as caught:
            streamsel.select(X, table.y, k=3)
        code = str(caught[0].message).partition("lists the columns: ")[2]
        exec(code.removesuffix("."), {"streamsel": streamsel, "X": X})  # noqa: S102
        listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
        assert listed == [f"v{j}" for j in range(7)]

    @pytest.mark.parametrize("method", ["ForwardSelection", "MRMR"])
    def test_numbers_of_columns_add_up(self, table, method):
        """Counts of columns add up, both as groups (ForwardSelection) and as columns (MRMR)."""
        X = table.assign(flat=1.0)
        text = streamsel.select(X, "y", k=3, method=method).report(format="md")
        assert (
            "34 columns were read; 1 was encoded as 2 columns of numbers (1 of categories), which "
            "makes 35: 2 skipped (1 constant, 1 text) and 33 learnt"
        ) in text
        outcomes = text[text.index("| outcome") :].partition("\n\n")[0].splitlines()[2:]
        *parts, total = (int(line.split("|")[2]) for line in outcomes)
        assert sum(parts) == total == (35 if method == "MRMR" else 32)

    @pytest.mark.parametrize(
        ("values", "skipped"),
        [
            ([np.nan] * N, "1 missing).\nHint: missing='mean'"),
            (1.0, "1 constant).\nHint: this lists"),
        ],
    )
    def test_no_column_can_be_used(self, table, values, skipped):
        X = table[["y", "id"]].assign(v=values)
        with pytest.raises(ValueError, match=r"can be used\. Got: 1, all skipped \(") as refused:
            streamsel.select(X.drop(columns="id"), "y")
        assert skipped in str(refused.value)
        with pytest.raises(ValueError, match=r"\(1 text\)\.\nHint: streamsel\.stream\.iter_ngrams"):
            streamsel.select(X[["y", "id"]], "y")

    def test_means_replace_missing_values_in_transforms(self, table):
        X = variables(table).assign(v3=table.v3.where(table.v3 > -1.0))
        result = streamsel.select(X, table.y, k=2, missing="mean")
        assert "v3" in result.selected
        assert result.transform()["v3"].notna().all()
        assert result.transform(X)["v3"].min() == pytest.approx(X.v3.min())

    def test_rows_without_a_target_are_dropped(self, table):
        X = table.assign(label=table.label.where(table.index > 4))
        X.loc[:4, "v3"] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = streamsel.select(X.drop(columns=["id", "y"]), "label", k=3)
        expected = streamsel.select(table.drop(columns="y").iloc[5:], "label", k=3)
        assert result.selected == expected.selected
        assert result.model.n_rows == N - 5
        assert len(result.transform()) == N
        read(result.report())


class TestMethods:
    """Learners and parameters that the methods lead to."""

    def test_defaults(self, table):
        X = variables(table)
        assert repr(streamsel.select(X, table.y).model) == "ForwardSelection(k=10, exact=True)"
        assert repr(streamsel.select(X, k=3).model) == "ProjSe(k=3)"
        assert repr(streamsel.extract(X, table.y, 2).model) == "RidgeComponents(n_components=2)"
        assert repr(streamsel.extract(X, n_components=3).model) == "PCA(n_components=3)"

    def test_further_parameters(self, table):
        result = streamsel.select(
            variables(table), table.y, 3, method="SelectKBest", permutations=99, max_candidates=9
        )
        assert result.model.permutations == 99
        result = streamsel.select(variables(table), table.y, method="OnlineFDR")
        assert type(result.model).__name__ == "OnlineFDR"

    def test_more_variables_than_a_default_bounds(self, rng):
        X = rng.normal(size=(20, 1_500))
        y = X[:, 0] + rng.normal(size=20)
        result = streamsel.select(X, y, k=1_200, method="ForwardSelection")
        assert result.model.max_features is None

    def test_any_selector_and_extractor(self, table):
        from streamsel import registry

        X = variables(table).iloc[:, :12]
        for entry in registry.LEARNERS:
            draw = streamsel.select if entry.kind == "selector" else streamsel.extract
            y = table.label if registry.fetch(entry.name)._is_supervised else None
            result = draw(X, y, 2, method=entry.name)
            assert result.transform(X).shape[0] == N
            assert entry.name in repr(result)

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"method": "MRMRR"}, ValueError, "Got: 'MRMRR'.\nHint: did you mean MRMR?"),
            ({"method": "PCA"}, ValueError, "Expected the name of a selector as method"),
            ({"ridges": 1.0}, TypeError, "Got: ridges.\nHint: did you mean ridge?"),
            ({"covariate": "v1"}, TypeError, "Got: covariate.\nHint: did you mean covariates?"),
            ({"k": 0}, ValueError, "Expected k of ForwardSelection"),
            (
                {"covariates": ["v1", "vv"]},
                ValueError,
                "covariates to name columns of X. Got: 'vv'",
            ),
            (
                {"covariates": ["vv3", "vv5"]},
                ValueError,
                "covariates to name columns of X. Got: 'vv3'",
            ),
            ({"y": ["v1"]}, ValueError, "Got: a list of names, ['v1'].\nHint: y='v1'"),
            ({"X": [[1.0, 2.0]]}, TypeError, "Got: list.\nHint: numpy.asarray(X)"),
            ({"missing": "none"}, ValueError, "Expected missing to be one of"),
            ({"y": None, "method": "MRMR"}, ValueError, "Expected a target: MRMR is supervised"),
        ],
    )
    def test_invalid_arguments_are_refused(self, table, given, error, message):
        with pytest.raises(error, match=re.escape(message)):
            streamsel.select(**({"X": variables(table), "y": table.y} | given))

    def test_the_number_of_components_is_suggested(self, table):
        with pytest.raises(TypeError, match=r"Got: q\.\nHint: did you mean n_components\?"):
            streamsel.extract(variables(table), q=2)

    def test_the_article_fits_the_kind(self, table):
        with pytest.raises(ValueError, match="Expected the name of an extractor as method"):
            streamsel.extract(variables(table), table.y, method="PCAA")

    def test_unsupported_targets_are_refused(self, table):
        with pytest.raises(ValueError, match="PCA learns without one"):
            streamsel.extract(variables(table), table.y, method="PCA")


class TestPickle:
    """Pickled results, such as those from a worker of joblib."""

    def _sent(self, result):
        return pickle.loads(pickle.dumps(result))  # noqa: S301

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    @pytest.mark.parametrize("as_path", [True, False])
    def test_results_of_a_file(self, table, tmp_path, suffix, as_path):
        path = tmp_path / f"x.{suffix}"
        table = table.drop(columns="id")
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
        X = path if as_path else iter_files([path], orientation="samples")
        result = streamsel.select(X, "y", k=3, drop=["label", "age"])
        sent = self._sent(self._sent(result))
        np.testing.assert_array_equal(sent.transform(), result.transform())
        assert sent.report() == result.report()

    def test_positions_in_the_genome_are_kept(self, tmp_path):
        path, risk = tmp_path / "x.bed", np.arange(40) % 3
        X = np.random.default_rng(0).integers(0, 3, size=(40, 9))
        to_bed(path, X, properties={"chromosome": [1] * 5 + [2] * 4, "bp_position": range(1, 10)})
        result = streamsel.select(path, risk + X[:, 0], k=2, method="SelectKBest")
        assert "Manhattan plot" in result.report()
        assert self._sent(result).report() == result.report()

    def test_results_of_a_stream_in_memory(self, table):
        """A pickled result of a stream has its results; errors explain that it lacks the rows."""
        X = variables(table)
        result = streamsel.select(iter_columns(lambda: iter(X.items())), table.y, k=3)
        sent = self._sent(result)
        assert sent.selected == result.selected
        assert "Correlation of selected variables" not in sent.report()
        with pytest.raises(ValueError, match=r"a pickled result does not have.*\n.*transform\(X\)"):
            sent.transform()
        np.testing.assert_array_equal(sent.transform(X), result.transform(X))


class TestReport:
    """Representations and reports of a result."""

    def test_reports_have_the_rows(self, table):
        result = streamsel.select(table, "label", k=4, method="SelectKBest")
        seen = read(result.report())
        assert "Correlation of selected variables" in seen.text
        assert "Target: 2 classes: high (40 rows), low (40 rows)." in seen.text
        assert "distribution" in seen.text

    @pytest.mark.parametrize(("name", "begins"), [("a.html", "<!D"), ("a.md", "# 4"), ("a", "<!D")])
    def test_reports_are_written(self, table, tmp_path, name, begins):
        result = streamsel.select(table, "label", k=4)
        text = result.report(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
        assert text.startswith(begins)

    @pytest.mark.parametrize(("name", "why"), [("v", "relevance near 1"), ("y_2", "a name like")])
    def test_copies_of_the_target_are_suspected(self, table, name, why):
        copy = 2.0 * table.y if name == "v" else table.y + table.v1
        with pytest.warns(UserWarning, match=f"{name} has (a )?{why}.*Is it another outcome"):
            result = streamsel.select(table.assign(**{name: copy}), "y", k=3, drop=["label"])
        shown = repr(result), result._repr_html_(), result.report(), result.report(format="md")
        assert all(why in text and "another outcome" in text for text in shown)
        assert [warning["code"] for warning in result.warnings] == ["outcome"]
        # Names are compared with those of target columns, which the model does not have.
        codes = [warning.code for warning in result.model.report().warnings]
        assert codes == (["outcome"] if name == "v" else [])

    @pytest.mark.parametrize("use", [streamsel.report, streamsel.plot.manhattan, streamsel.save])
    def test_errors_hint_at_the_model(self, table, use):
        result = streamsel.select(table, "label", k=4, drop=["y"])
        further = ("model",) if use is streamsel.save else ()
        with pytest.raises(TypeError, match=r"Hint: .*result\.model"):
            use(result, *further)
        with pytest.raises(TypeError, match=r"Hint: .*(load\(path\)|save\(model, path\))"):
            use("model", *further)

    @pytest.mark.parametrize(
        ("name", "error", "message"),
        [
            ("a.pdf", ValueError, "ends in .html, .json or .md. Got: "),
            ("none/a.md", FileNotFoundError, "No such directory: "),
        ],
    )
    def test_unwritable_reports_are_refused(self, table, tmp_path, name, error, message):
        result = streamsel.select(variables(table), table.label, k=2)
        with pytest.raises(error, match=re.escape(message)):
            result.report(tmp_path / name)

    def test_reports_of_components(self, table):
        seen = read(streamsel.extract(table, "label", 2, drop=["y"]).report())
        assert "Scatter plot of rows" in seen.text
        assert "high (40)" in seen.text

    def test_the_command_of_a_file_selects_the_same(self, table, tmp_path):
        from click.testing import CliRunner

        from streamsel.cli.app import app

        path, saved = tmp_path / "x.csv", tmp_path / "m"
        table.to_csv(path, index=False)
        given = {"covariates": ["age"], "drop": ["y", "v0"], "missing": "mean"}
        result = streamsel.select(path, "label", k=3, method="MRMR", **given)
        text = result.report(format="md")
        line = text[text.index("```sh") + 5 :].partition("```")[0]
        words = shlex.split(line.replace("\\\n", " "))
        run = CliRunner().invoke(app, [*words[1:], "-m", str(saved)])
        assert run.exit_code == 0, run.output
        assert streamsel.load(saved).scores == pytest.approx(result.model.scores)
        # Values that are not in the file cannot be part of a command.
        other = streamsel.select(path, table.label, k=3, drop=["label"])
        assert "streamsel select" not in other.report(format="md")

    def test_text_and_dates_are_encoded(self, tmp_path):
        rng = np.random.default_rng(0)
        city = rng.integers(0, 3, size=200)
        frame = pd.DataFrame({f"x{i}": rng.normal(size=200) for i in range(10)})
        frame["city"] = np.array(["Oslo", "Rome", "Bern"])[city]
        frame["y"] = city + 0.6 * rng.normal(size=200)
        path = tmp_path / "x.parquet"
        frame.to_parquet(path)
        for source in (frame, path):
            result = streamsel.select(source, "y", k=2)
            assert result.selected[0] == "city"
            rows = np.asarray(result.transform(source))
            assert rows[:3, :3].tolist() == [
                [float(name == label) for name in ("Bern", "Oslo", "Rome")]
                for label in frame["city"][:3]
            ]
            np.testing.assert_array_equal(np.asarray(result.transform()), rows)
            assert "city" in result.report(format="md")
        built = streamsel.extract(frame, "y", n_components=1)
        assert abs(np.corrcoef(built.transform(frame)["ridgecomponents0"], city)[0, 1]) > 0.9
        # A stream is used without encoding.
        with pytest.warns(UserWarning, match=r"\(1 text\): 'city' \('"):
            plain = streamsel.select(streamsel.stream.as_stream(frame), "y", k=2)
        assert plain.skipped == {"text": 1}

    def test_a_frame_without_a_variable_is_refused(self, table):
        X = variables(table)
        for result in (streamsel.select(X, table.y, k=2), streamsel.extract(X, table.y, 2)):
            used = [*result.model.in_use]
            with pytest.raises(ValueError, match=f"a frame without {used[0]!r}"):
                result.transform(X.drop(columns=used[0]))

    @pytest.mark.parametrize("kind", ["frame", "polars", "file"])
    def test_text_in_a_variable_is_refused(self, table, kind, tmp_path):
        X = variables(table)
        for result in (streamsel.select(X, table.y, k=2), streamsel.extract(X, table.y, 2)):
            bad = X.astype({"v3": str})
            bad.loc[7, "v3"] = "abc"
            if kind == "frame":
                bad["v3"] = [value if value == "abc" else float(value) for value in bad.v3]
            elif kind == "file":
                bad.to_csv(tmp_path / "x.csv", index=False)
                bad = tmp_path / "x.csv"
            else:
                bad = pl.from_pandas(bad.iloc[7:])
            row = 0 if kind == "polars" else 7
            with pytest.raises(ValueError, match=f"in 'v3', row {row}. Got: 'abc'"):
                result.transform(bad)

    def test_objects_that_are_numbers_are_accepted(self, table):
        X = variables(table)
        result = streamsel.select(X, table.y, k=2)
        objects = X.astype(object)
        objects.iloc[0] = None
        assert result.transform(objects).iloc[1:].astype(float).equals(result.transform(X)[1:])

    def test_components_are_listed_in_the_order_of_transforms(self, table):
        result = streamsel.extract(variables(table), table.y, 3)
        shown = repr(result).splitlines()[1].split(", ")
        assert shown == result.components == list(result.transform(variables(table)).columns)

    def test_labels_as_covariates_are_not_names(self, table):
        labels = [f"a{i % 7}" for i in range(N)]
        result = streamsel.select(variables(table), table.y, k=2, covariates=labels)
        assert len(result.selected) == 2

    def test_rows_in_another_order_are_refused(self, table):
        X = variables(table)
        shuffled = table.y.sample(frac=1.0, random_state=0)
        with pytest.raises(ValueError, match="same index in another order"):
            streamsel.select(X, shuffled, k=2)
        found = streamsel.select(X, shuffled.loc[X.index], k=2).selected
        assert found == streamsel.select(X, table.y.reset_index(drop=True), k=2).selected

    def test_no_columns_are_refused(self):
        with pytest.raises(ValueError, match="at least one column"):
            streamsel.select(streamsel.stream.iter_columns(iter([])), np.arange(5.0), 2)

    def test_representations(self, table):
        result = streamsel.select(variables(table), table.y, k=25)
        lines = repr(result).splitlines()
        assert lines[0].startswith("ForwardSelection(k=25, exact=True): 25 of 30 variables")
        assert lines[1] == f"{', '.join(result.selected[:20])}, … (5 more)"
        assert read(result._repr_html_()).text.startswith("ForwardSelection :")
        assert "warning" not in repr(result)
        rng = np.random.default_rng(0)
        rare = (rng.random((200, 300)) < 0.02).astype(float)
        doubtful = streamsel.select(rare, np.repeat(["a", "b"], [192, 8]), k=3)
        warnings = doubtful.model.report().warnings
        assert warnings
        assert repr(doubtful).splitlines()[2:] == [f"warning: {one.text}" for one in warnings]


def test_tuples_can_be_column_names():
    names = pd.MultiIndex.from_product([["a", "b"], ["x", "y", "z"]])
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 6)), columns=names)
    plain = frame.set_axis([f"{first}{second}" for first, second in names], axis=1)
    found = streamsel.select(frame, ("a", "x"), k=2, covariates=[("b", "x")], drop=("b", "y"))
    expected = streamsel.select(plain, "ax", k=2, covariates=["bx"], drop=["by"])
    assert ["".join(name) for name in found.selected] == expected.selected
    one = streamsel.select(frame, ("a", "x"), k=2, covariates=("b", "x"), drop=[("b", "y")])
    assert one.selected == found.selected
    weighted = streamsel.select(frame.abs(), ("a", "x"), k=4, weights=("b", "z"))
    assert ("b", "z") not in weighted.selected


def test_a_frame_of_one_column_is_a_single_target():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 5)), columns=list("abcde"))
    frame["y"] = np.arange(60) % 3
    expected = streamsel.select(frame, "y", k=2)
    found = streamsel.select(frame.drop(columns="y"), frame[["y"]], k=2)
    assert found.model.report().target == expected.model.report().target
    assert found.model.scores == expected.model.scores


def test_tuples_of_values_are_targets():
    X = np.random.default_rng(0).normal(size=(4, 3))
    assert streamsel.select(X, (0.5, 1.0, -1.0, 2.0), k=1).model.n_rows == 4
    assert streamsel.select(X, ([0.5], [1.0], [-1.0], [2.0]), k=1).model.n_rows == 4
