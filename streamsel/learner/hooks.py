"""A learner's tags against its hooks' needs, when its class is defined."""

from __future__ import annotations

import dis
from typing import Any

from streamsel import params
from streamsel.held.beside import Beside
from streamsel.held.part import Held
from streamsel.learner.window import Window


def check_hooks(cls: Any) -> None:
    """Raise TypeError if a hook asks for more than the states offer that its class keeps."""
    if not hasattr(cls, "supervised"):
        raise TypeError(
            f"{cls.__name__} does not say whether it has a target.\n"
            "Hint: Supervised or Unsupervised is to be its last base."
        )
    if issubclass(cls.rows, Window) and "window_size" not in params.rules_of(cls):
        raise TypeError(
            f"{cls.__name__} learns rows by windows, and has no parameter window_size.\n"
            "Hint: window_size: int = param(params.Whole(2), default=200)."
        )
    states = [cls.keeps] + ([cls.rows] if issubclass(cls.rows, (Held, Beside)) else [])
    # Of those that offer it the most general is named: a state comes before those made of it.
    known = {offer: kind for kind in reversed(_states(Held)) for offer in kind.offers}
    for name in cls._hooks:
        hook = getattr(cls, name)
        asked = {
            step.argval
            for step in dis.get_instructions(hook)
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        }
        for offer in sorted(asked & known.keys()):
            for state in states:
                if offer not in state.offers:
                    raise TypeError(
                        f"{cls.__name__}.{name} asks for {offer!r}, which {state.__name__} does "
                        f"not offer.\nHint: {known[offer].__name__} does; keep that, or let "
                        "windows of rows serve the method (rows = Window)."
                    )


def _states(kind: type) -> list[Any]:
    subclasses: list[type] = kind.__subclasses__()
    return [kind, *(state for sub in subclasses for state in _states(sub))]
