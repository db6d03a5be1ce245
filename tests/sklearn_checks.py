"""Results of scikit-learn's estimator checks: `python -m tests.sklearn_checks`.

Prints the table of `docs/pages/sklearn.md` for the installed version of scikit-learn.
"""

import warnings
from collections import Counter
from typing import Any

import sklearn
from sklearn.utils.estimator_checks import check_estimator

import streamsel.sklearn
from streamsel import registry

# Small enough for the few features in the checks.
FEW = {"k": 2, "n_components": 2}


def few(name: str) -> Any:
    """Return an estimator with few selected variables or components."""
    cls = getattr(streamsel.sklearn, name)
    return cls(**{key: value for key, value in FEW.items() if key in cls().get_params()})


def checked(name: str) -> list[dict[str, Any]]:
    """Return the results of all checks; raise if one fails.

    Some checks use noise, in which methods that test select nothing, so that scikit-learn warns.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No features were selected", UserWarning)
        found: list[dict[str, Any]] = check_estimator(few(name), on_skip=None)
    return found


def main() -> None:
    """Print a line for each estimator, and the names of the checks."""
    print(f"| estimator | passed, scikit-learn {sklearn.__version__} | skipped |\n|---|---:|---|")
    names: Counter[str] = Counter()
    for name in registry.names():
        found = checked(name)
        passed = [check["check_name"] for check in found if check["status"] == "passed"]
        skipped = [check["check_name"] for check in found if check["status"] == "skipped"]
        print(f"| {name} | {len(passed)} | {', '.join(skipped)} |")
        names.update(set(passed))
    print()
    print(", ".join(f"`{name}`" for name in sorted(names)))


if __name__ == "__main__":
    main()
