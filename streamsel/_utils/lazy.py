"""Names of a package that are imported on first access (PEP 562), so that importing it is fast.

The library lazy_loader does the same for names of submodules. It cannot create a name, as
`streamsel.sklearn` does, and `import streamsel` would load a second library, which a test refuses.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from streamsel._utils.text import close_spellings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


def lazy_names(
    package: str, names: Collection[str], load: Callable[[str], Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package
        Name of the package; `dir` lists its `__all__`.
    names
        Names to load on first access.
    load
        Returns the value of a name. It is called once: the package keeps the value, as pickle
        finds a class by its name.
    """
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in names:
            close = close_spellings(name, namespace["__all__"])
            hint = f"\nHint: did you mean {' or '.join(close)}?" if close else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        namespace[name] = value = load(name)
        return value

    return get, lambda: sorted(namespace["__all__"])
