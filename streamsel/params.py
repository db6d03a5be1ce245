"""Declared parameters: signature, storage, checks, docs and command options follow from them."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import numbers
import textwrap
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, dataclass_transform

from streamsel._utils.text import spelling_hint

# Upper bound of counts that Python loops over: names of components, steps of a path.
MAX_COUNT = 1_000_001
# Compiled loops count in 64-bit integers.
_INT64_END = 2**63


class IntRule(NamedTuple):
    """An int in [`low`, `below`); None too if `optional`."""

    low: int
    optional: bool = False
    below: int = _INT64_END

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        if value is None:
            return self.optional
        return (
            isinstance(value, numbers.Integral)
            and not isinstance(value, bool)
            and self.low <= int(value) < self.below
        )

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        return None if text == "None" else int(text)

    def __str__(self) -> str:
        below = "inf" if self.below == _INT64_END else self.below
        return f"an int in the range [{self.low}, {below}){' or None' if self.optional else ''}"


class FloatRule(NamedTuple):
    """A finite number from `low` (excluded if `open`) to `below` (included if `closed`).

    None too if `optional`.
    """

    low: float
    open: bool = False
    optional: bool = False
    below: float = math.inf
    closed: bool = False

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        if value is None:
            return self.optional
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            return False
        number = float(value)
        above = number > self.low if self.open else number >= self.low
        return above and (number < self.below or (self.closed and number == self.below))

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        return None if text == "None" else float(text)

    def __str__(self) -> str:
        bracket = "(" if self.open else "["
        end = "]" if self.closed else ")"
        return (
            f"a float in the range {bracket}{self.low}, {self.below}{end}"
            f"{' or None' if self.optional else ''}"
        )


class NumberOrTuple(NamedTuple):
    """A number, or several distinct ones in any array-like; stored as a tuple."""

    each: FloatRule
    optional: bool = False

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        if isinstance(value, tuple):
            # Checked first: a value that is not a number may not be hashable.
            all_valid = bool(value) and all(map(self.each.admits, value))
            return all_valid and len(set(value)) == len(value)
        return (value is None and self.optional) or self.each.admits(value)

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        if "," in text:
            return tuple(float(part) for part in text.split(","))
        return None if text == "None" else float(text)

    def __str__(self) -> str:
        if self.optional:
            return f"{self.each}, an array-like of distinct ones or None"
        return f"{self.each} or an array-like of distinct ones"


class ChoiceOrNumber(NamedTuple):
    """One of a few strings, or a number that satisfies one of the given rules."""

    choice: ChoiceRule
    numbers: tuple[IntRule | FloatRule, ...]

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        return self.choice.admits(value) or any(rule.admits(value) for rule in self.numbers)

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        if self.choice.admits(text):
            return text
        for rule in self.numbers[:-1]:
            with suppress(ValueError):
                return rule.read(text)
        return self.numbers[-1].read(text)

    def __str__(self) -> str:
        return " or ".join(map(str, (self.choice, *self.numbers)))


class JobsRule(NamedTuple):
    """A number of threads: an int other than 0; negative numbers count back from all cores."""

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value != 0

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        return int(text)

    def __str__(self) -> str:
        return "an int other than 0 (-1 for all cores)"


class ChoiceRule(NamedTuple):
    """One of a few strings."""

    options: tuple[str, ...]

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        return isinstance(value, str) and value in self.options

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        return text

    def __str__(self) -> str:
        listed = ", ".join(map(repr, self.options))
        return f"one of {listed}" if len(self.options) > 1 else listed


class FlagRule(NamedTuple):
    """True or False."""

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        return isinstance(value, bool)

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        words = {"true": True, "yes": True, "false": False, "no": False}
        return words.get(text.lower(), text)

    def __str__(self) -> str:
        return "True or False"


class NamesRule(NamedTuple):
    """Distinct names in any array-like, stored as a tuple; or None."""

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        if value is None:
            return True
        if not isinstance(value, tuple) or not value:
            return False
        try:  # a clone copies them, and a dict looks them up
            copy.deepcopy(value)
            return len(set(value)) == len(value)
        except Exception:  # noqa: BLE001 (any error of theirs, or endless nesting)
            return False

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        return None if text == "None" else tuple(name.strip() for name in text.split(","))

    def __str__(self) -> str:
        return "an array-like of distinct names or None"


class EstimatorRule(NamedTuple):
    """An estimator with `fit` and `predict`; or None."""

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        can_be_fitted = hasattr(value, "fit") and hasattr(value, "predict")
        return value is None or (can_be_fitted and not isinstance(value, type))

    def read(self, text: str) -> Any:
        """Return the value that a text represents, which can only be None."""
        if text != "None":
            raise ValueError(text)

    def __str__(self) -> str:
        return "a scikit-learn estimator or None"


class FoldsRule(NamedTuple):
    """Folds of a cross-validation as scikit-learn takes them; pairs are stored as tuples."""

    def admits(self, value: Any) -> bool:
        """Whether the value satisfies the rule."""
        if isinstance(value, numbers.Integral):
            return not isinstance(value, bool) and int(value) >= 2
        if isinstance(value, tuple):
            return bool(value) and all(
                isinstance(pair, tuple)
                and len(pair) == 2
                and all(part and all(type(row) is int for row in part) for part in pair)
                for pair in value
            )
        return hasattr(value, "split") and hasattr(value, "get_n_splits")

    def read(self, text: str) -> Any:
        """Return the value that a text represents."""
        return int(text)

    def __str__(self) -> str:
        return (
            "an int in the range [2, inf), a splitter of scikit-learn, or a list of pairs of row "
            "numbers, (train, test)"
        )


Rule = (
    IntRule
    | FloatRule
    | NumberOrTuple
    | ChoiceOrNumber
    | JobsRule
    | ChoiceRule
    | FlagRule
    | NamesRule
    | EstimatorRule
    | FoldsRule
)


def parameter_repr(value: Any) -> str:
    """Return the repr of a value; its type if `repr` fails."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 (any error of the value's own, or endless nesting)
        return f"<{type(value).__name__}>"


def type_name(value: Any) -> str:
    """Return the type of a value for a message; for a class, its name."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


# The names of numpy.bool_; the command's help does not import numpy.
_NUMPY_BOOLEANS = {("numpy", "bool"), ("numpy", "bool_")}


def stored_value(rule: Rule, value: Any) -> Any:
    """Return a value as a learner stores it: sequences as tuples, NumPy booleans as Python's.

    Copies, files and comparisons of parameters then handle no other types.
    """
    if isinstance(rule, NumberOrTuple | NamesRule):
        if isinstance(value, list | range):
            return tuple(value)
        # Arrays, and the Series and Index of pandas and polars.
        shape = getattr(value, "shape", None)
        return _as_tuple(value) if isinstance(shape, tuple) and len(shape) == 1 else value
    if isinstance(rule, FoldsRule) and isinstance(value, list | tuple):
        with suppress(TypeError, ValueError):
            return tuple(tuple(map(_as_tuple, pair)) for pair in value)
    kind = type(value)
    if isinstance(rule, FlagRule) and (kind.__module__, kind.__name__) in _NUMPY_BOOLEANS:
        return bool(value)
    return value


def _as_tuple(values: Any) -> tuple[Any, ...]:
    import numpy as np

    return tuple(np.asarray(values).tolist())


def check(owner: str, rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Raise ValueError for the first parameter that violates its rule."""
    for name, rule in rules.items():
        if not rule.admits(stored_value(rule, values[name])):
            raise parameter_error(owner, name, rule, values[name])


def parameter_error(owner: str, name: str, expected: object, value: Any) -> ValueError:
    """Return the error of an invalid parameter, with the expected and the actual value.

    Parameters
    ----------
    owner
        The class or function.
    name
        Name of the parameter.
    expected
        A rule, or a text such as "None or above k = 10".
    value
        The invalid value.
    """
    got = parameter_repr(value)
    return ValueError(f"Expected {name} of {owner} to be {expected}. Got: {got}.")


def refuse_unknown(owner: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise a TypeError for a parameter that is not among those known, with close spellings."""
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        hint = spelling_hint(unknown, known)
        raise TypeError(f"Expected parameters of {owner}. Got: {unknown}.\nHint: {hint}")


def changed_parameters(instance: Any) -> str:
    """Return the repr of an object: its class, and its parameters that differ from the defaults."""
    texts = [
        f"{name}={parameter_repr(value)}"
        for name, parameter in inspect.signature(type(instance)).parameters.items()
        if not _is_default(value := getattr(instance, name), parameter.default)
    ]
    return f"{type(instance).__name__}({', '.join(texts)})"


def _is_default(value: Any, default: Any) -> bool:
    # An estimator or a splitter may define an equality of its own.
    is_plain = isinstance(value, str | numbers.Number)
    return value is default or (is_plain and bool(value == default))


# Declaration


def param(
    rule: Rule, *, default: Any, kw_only: bool = True, doc: str = "", default_text: str = ""
) -> Any:
    """Declare a parameter of a learner, as `dataclasses.field` does a field.

    Parameters
    ----------
    rule
        The rule that its values must satisfy.
    default
        The default: None, a number, a string, a boolean or a tuple.
    kw_only
        Whether it is keyword-only.
    doc
        The description of a parameter that several learners share, which is added to the docstring
        of each. A learner's own parameters are described in its docstring.
    default_text
        The default that help shows if None is resolved by the other parameters.
    """
    shared = {"rule": rule, "doc": inspect.cleandoc(doc), "default_text": default_text}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=shared)


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class Declared:
    """A class with declared parameters: its constructor, storage, checks and shared docs follow."""

    # Inherited parameters that do not apply to a class and its subclasses: name -> fixed value.
    _fixed_parameters: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _make_dataclass(cls)

    def __dir__(self) -> list[str]:
        fixed = _fixed_parameters_of(type(self))
        return [name for name in super().__dir__() if name not in fixed]

    def __post_init__(self) -> None:
        cls: type = type(self)
        rules = rules_of(cls)
        check(cls.__name__, rules, vars(self))
        for name, rule in rules.items():
            value = getattr(self, name)
            stored = stored_value(rule, value)
            if stored is not value:
                setattr(self, name, stored)


def _make_dataclass(cls: type) -> None:
    for name, value in _fixed_parameters_of(cls).items():
        cls.__annotations__[name] = ClassVar[Any]
        setattr(cls, name, value)
    dataclasses.dataclass(repr=False, eq=False, match_args=False)(cls)
    own = inspect.get_annotations(cls)
    signature = inspect.signature(cls)
    # A class's own parameters come before inherited ones.
    ordered = sorted(
        signature.parameters.values(),
        key=lambda p: (p.kind, p.kind == p.KEYWORD_ONLY and p.name not in own),
    )
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    init = _init_with_hints(cls, cls.__dict__["__init__"])
    init.__signature__ = signature.replace(parameters=[first, *ordered])
    cls.__init__ = init  # type: ignore[misc]
    shared = {f.name: f.metadata["doc"] for f in dataclasses.fields(cls) if f.metadata.get("doc")}
    if cls.__doc__ and "\nParameters\n" in inspect.cleandoc(cls.__doc__):
        cls.__doc__ = _with_parameters(inspect.cleandoc(cls.__doc__), shared)


def _fixed_parameters_of(cls: type) -> dict[str, Any]:
    fixed: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        fixed |= vars(base).get("_fixed_parameters", {})
    return fixed


def _init_with_hints(cls: type, init: Any) -> Any:
    """Return a constructor whose error for an unknown parameter suggests close spellings."""

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 (it is one)
        refuse_unknown(cls.__name__, kwargs, inspect.signature(cls).parameters)
        init(self, *args, **kwargs)

    return __init__


@functools.cache
def rules_of(cls: type) -> Mapping[str, Rule]:
    """Return the rule of every parameter of a class, in the order of its signature."""
    rules = {f.name: f.metadata["rule"] for f in dataclasses.fields(cls)}
    return {name: rules[name] for name in inspect.signature(cls).parameters}


def default_texts(cls: type) -> dict[str, str]:
    """Return the default of every parameter as help shows it."""
    own = {f.name: f.metadata["default_text"] for f in dataclasses.fields(cls)}
    defaults = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
    return {name: own[name] or str(default) for name, default in defaults.items()}


def _with_parameters(doc: str, shared: Mapping[str, str]) -> str:
    """Insert the shared parameters after the last of a docstring's own."""
    head, rule, rest = doc.partition("Parameters\n----------\n")
    own, blank, after = rest.partition("\n\n")
    lines = own.split("\n")
    documented = {name.strip() for line in lines if line[:1].strip() for name in line.split(",")}
    for name, text in shared.items():
        if name not in documented:
            lines += [name, textwrap.indent(text, "    ")]
    return head + rule + "\n".join(lines) + blank + after
