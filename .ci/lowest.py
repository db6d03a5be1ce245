"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

python .ci/lowest.py >lowest.txt
python -m pip install --constraint lowest.txt --editable ".[all,test]"
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
EXTRAS = ("all", "test")


def lowest(requirements: Iterable[str]) -> Iterator[str]:
    """Turn name>=version into name==version; what names this package's extras, into theirs."""
    for requirement in requirements:
        if own := re.fullmatch(rf"{PROJECT['name']}\[(.+)\]", requirement):
            for extra in own[1].split(","):
                yield from lowest(PROJECT["optional-dependencies"][extra])
        elif bound := re.fullmatch(r"([\w-]+)(?:\[.+\])?>=([\w.]+)", requirement):
            yield f"{bound[1]}=={bound[2]}"
        else:
            raise SystemExit(f"Expected NAME>=VERSION in pyproject.toml. Got: {requirement}")


ALL = (*PROJECT["dependencies"], f"{PROJECT['name']}[{','.join(EXTRAS)}]")
print(*sorted(set(lowest(ALL))), sep="\n")
