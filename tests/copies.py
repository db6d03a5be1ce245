"""All ways to copy a model during learning, and a copy whose snapshot is the current solution."""

import copy
import pickle

from streamsel import load, save


def saved(model, path):
    save(model, path / "model.sel")
    return load(path / "model.sel")


def as_of_now(model):
    """Return a copy whose transforms use the current solution instead of the snapshot."""
    model = copy.deepcopy(model)
    model._refresh.stored = model._current()
    return model


COPIES = {
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),  # noqa: S301
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "include_attributes": lambda model, _: model.clone(include_attributes=True),
    "save": saved,
}
