"""The ways in which a model is copied in the middle of a stream."""

import copy
import pickle

from streamsel import load, save


def saved(model, path):
    save(model, path / "model.sel")
    return load(path / "model.sel")


COPIES = {
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),  # noqa: S301
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "include_attributes": lambda model, _: model.clone(include_attributes=True),
    "save": saved,
}
