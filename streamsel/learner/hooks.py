"""Check, when a learner class is defined, that its states provide what its hooks use."""

from __future__ import annotations

import dis
from typing import Any

from streamsel import params
from streamsel.held.beside import Beside
from streamsel.held.part import Held
from streamsel.learner.window import Window


def check_hooks(cls: Any) -> None:
    """Raise TypeError if a hook uses a member that the states of its class do not provide."""
    if not hasattr(cls, "supervised"):
        raise TypeError(
            f"{cls.__name__} does not declare whether it has a target.\n"
            "Hint: make Supervised or Unsupervised its last base class."
        )
    if issubclass(cls.rows, Window) and "window_size" not in params.rules_of(cls):
        raise TypeError(
            f"{cls.__name__} learns rows by windows, but has no parameter window_size.\n"
            "Hint: window_size: int = param(params.Whole(2), default=200)."
        )
    states = [cls.keeps] + ([cls.rows] if issubclass(cls.rows, (Held, Beside)) else [])
    # Name the most general state that provides a member: base classes come first.
    known = {offer: kind for kind in reversed(_states(Held)) for offer in kind.offers}
    for name in cls._hooks:
        hook = getattr(cls, name)
        used = {
            step.argval
            for step in dis.get_instructions(hook)
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        }
        for offer in sorted(used & known.keys()):
            for state in states:
                if offer not in state.offers:
                    raise TypeError(
                        f"{cls.__name__}.{name} uses {offer!r}, which {state.__name__} does "
                        f"not provide.\nHint: {known[offer].__name__} does; use that state, or "
                        "windows of rows (rows = Window)."
                    )


def _states(kind: type) -> list[Any]:
    subclasses: list[type] = kind.__subclasses__()
    return [kind, *(state for sub in subclasses for state in _states(sub))]
