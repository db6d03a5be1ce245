"""The package: cost of imports, public names, and their documentation."""

import ast
import functools
import importlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamsel
import streamsel.evaluate
import streamsel.plot
import streamsel.stream
from streamsel import registry
from streamsel._kernels import aligned_moments, joint_moments, row_moments

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "streamsel"

LEARNERS = registry.names()
PUBLIC = [
    (module.__name__, name)
    for module in (streamsel, streamsel.evaluate, streamsel.plot, streamsel.stream)
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
]

# Modules that light imports must not load: each costs tens of milliseconds or more.
HEAVY = {"click", "matplotlib", "pandas", "polars", "pyarrow", "rich", "sklearn"}


def modules_after(statement):
    """Return the third-party packages that a fresh interpreter loads for a statement."""
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        f"{statement}\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - sys.stdlib_module_names))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_import_loads_nothing_else():
    assert modules_after("import streamsel") == {"streamsel"}


@pytest.mark.slow
def test_no_optional_library_is_loaded_before_it_is_needed():
    """No learner loads an optional library on import; one process tests all."""
    statements = [
        "import streamsel.stream",
        "from streamsel.evaluate import clustering_nmi, linear_alignment, selection_stability",
        *(f"from streamsel import {name}" for name in LEARNERS),
    ]
    assert not modules_after("\n".join(statements)) & HEAVY


@pytest.mark.slow
def test_selection_does_not_import_reporting_or_compilation():
    """Selection does not import modules that only reports or compilation need."""
    program = (
        "import sys\n"
        "import numpy as np\n"
        "from streamsel import ForwardSelection, SelectKBest\n"
        "from streamsel.stream import clean, iter_array\n"
        "for model in (SelectKBest(1), ForwardSelection(1)):\n"
        "    model.learn_target(np.arange(9.0))\n"
        "    model.learn_columns(clean(iter_array(np.eye(9))))\n"
        "    assert len(model.selected) == 1\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('scipy.', 'narwhals.'))))\n"
    )
    # If kernels are not in the cache, the first process compiles them.
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
        )
    # numba only looks for SciPy, which loads few private modules.
    loaded = {name for name in run.stdout.split() if "._" not in name}
    assert loaded <= {"scipy.version"}


@pytest.mark.slow
def test_columns_of_parquet_are_read_without_pandas(tmp_path):
    """Parquet columns are read without pandas, which Arrow's conversion would import."""
    path = tmp_path / "x.parquet"
    table = pa.table({"a": [1.5, None], "b": [1, 2], "c": pa.array([1, 2], pa.uint8())})
    pq.write_table(table, path)
    loaded = modules_after(
        "import numpy as np\n"
        "from streamsel.stream import iter_parquet\n"
        f"stream = iter_parquet({str(path)!r})\n"
        "assert np.isnan(stream.take(['a'])['a'][1])\n"
        "assert [values.tolist() for _, values in stream.without(['a'])] == [[1, 2], [1, 2]]"
    )
    assert "pandas" not in loaded


def test_command_line_help_does_not_load_the_learners():
    loaded = modules_after(
        "from streamsel.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    print()"
    )
    assert "streamsel" in loaded
    assert not loaded & {"numba", "river", "scipy"}


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_public_names_exist_and_are_listed(module, name):
    module = importlib.import_module(module)
    assert getattr(module, name) is not None
    assert name in dir(module)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = streamsel.nonesuch


@pytest.mark.slow
def test_lazy_names_are_loaded_once_and_listed():
    program = (
        "import importlib\n"
        "packages = ['', '.evaluate', '.extraction', '.reporting', '.selection', '.sklearn']\n"
        "packages = [importlib.import_module(f'streamsel{name}') for name in packages]\n"
        "packages.append(importlib.import_module('streamsel.stream'))\n"
        "lazy = []\n"
        "for package in packages:\n"
        "    assert dir(package) == sorted(package.__all__), package\n"
        "    lazy.append([name for name in package.__all__ if name not in vars(package)])\n"
        "    assert lazy[-1], package\n"
        "for package, names in zip(packages, lazy):\n"
        "    for name in names:\n"
        "        assert getattr(package, name) is vars(package)[name], (package, name)\n"
        "    assert not hasattr(package, 'nonesuch'), package\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_package_has_a_typed_marker():
    assert files("streamsel").joinpath("py.typed").is_file()


def test_version_is_defined_once():
    assert streamsel.__version__ == importlib.metadata.version("streamsel")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if ".dev" in streamsel.__version__:
        # Unreleased changes are fragments, from which a release makes its section.
        assert list((ROOT / "docs" / "changes").glob("*.*.md"))
    else:
        assert f"## [{streamsel.__version__}]" in changelog


def documented():
    """Return the names on the reference pages: the last part of every `::: path.to.name`."""
    pages = (ROOT / "docs" / "pages" / "reference").rglob("*.md")
    found = set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        found |= {path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)", text, re.MULTILINE)}
    return found


# Members of learners are checked in tests.conformance.
@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_every_public_name_is_documented(module, name):
    assert name in documented()
    thing = getattr(importlib.import_module(module), name)
    assert ">>> " in inspect.getdoc(thing), f"{name} has no example"


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path):
    """Return the absolute name of every module that a file imports, at any depth."""
    names = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_only_kernels_import_numba():
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if "numba" in path.read_text(encoding="utf-8")
        and any(name.partition(".")[0] == "numba" for name in imports(path))
    }
    assert users == {"_kernels"}


@pytest.mark.parametrize(
    "path",
    # The module with the decorator has no loops.
    sorted({*(PACKAGE / "_kernels").glob("*.py")} - {PACKAGE / "_kernels" / "compile.py"}),
    ids=lambda path: path.stem,
)
def test_a_kernel_calls_only_kernels_of_its_own_file(path):
    # A change of a called kernel in another file does not recompile a cached kernel.
    ours = {name for name in imports(path) if name.startswith("streamsel")}
    assert ours <= {"streamsel._kernels.compile", "streamsel._kernels.compile.kernel"}


def test_kernels_share_the_indices_of_counts():
    for other in (joint_moments, aligned_moments):
        assert (other.STEP, other.KEEP) == (row_moments.STEP, row_moments.KEEP)


@pytest.mark.slow
def test_private_modules_are_imported_in_their_own_package_only():
    """Private modules are only imported within their own package."""
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        package = ".".join(("streamsel", *path.relative_to(PACKAGE).parent.parts))
        for name in imports(path):
            owner, _, module = name.rpartition(".")
            is_module = (PACKAGE.parent / owner.replace(".", "/") / f"{module}.py").exists()
            private = module.startswith("_") and is_module and owner != "streamsel"
            if private and owner != package:
                wrong.append((str(path.relative_to(PACKAGE)), name))
    assert wrong == []


@pytest.mark.slow
def test_names_of_classes_and_public_functions_are_unique():
    names = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
        or (isinstance(node, ast.FunctionDef) and not node.name.startswith("_"))
    )
    assert [name for name, count in names.items() if count > 1] == []
