"""Strict JSON, without NaN and infinities."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

# JSON escapes line breaks in texts, so this matches only lists of numbers.
_LIST_OF_NUMBERS = re.compile(r"\[\n[-+.\deE,\s]+\]")


def as_json(value: Any, indent: int | None = None) -> str:
    """Write a value as JSON.

    Non-finite numbers become null; values without a JSON type are written as text. With an indent,
    a list of numbers is on one line.
    """
    text = json.dumps(_strict(value), indent=indent, allow_nan=False, default=str)
    return _LIST_OF_NUMBERS.sub(lambda found: f"[{' '.join(found[0][1:-1].split())}]", text)


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_strict(item) for item in value]
    return value
