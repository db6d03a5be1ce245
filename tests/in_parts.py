"""Learn columns in parts, with further passes, like processes that share no memory."""

import itertools
import pickle

import numpy as np

from streamsel.stream import as_stream


def cut(p, rng):
    """Return places at which p columns are cut into parts, of which some may be empty."""
    inner = rng.integers(0, p + 1, int(rng.integers(0, 9)))
    return [0, *np.sort(inner).tolist(), p]


def streams(X, edges):
    """Return the parts of X, each a stream of columns under the numbers that they have in X."""
    return [
        as_stream(X[:, start:stop], range(start, stop)) for start, stop in itertools.pairwise(edges)
    ]


def pickled(thing):
    """Return what is sent of a thing."""
    return pickle.dumps(thing)


def sent(thing):
    """Return what arrives of a thing that is sent."""
    return pickle.loads(pickled(thing))  # noqa: S301


def together(found, rng):
    """Merge what was found, in order and in a tree; any one."""
    while len(found) > 1:
        j = int(rng.integers(len(found) - 1))
        found[j].merge(found.pop(j + 1))
    return found[0]


def read(reading, parts):
    """Return what a reading finds in every part."""
    found, arrival = [], 0
    for part in parts:
        found.append(sent(sent(reading).read(part, arrival)))
        arrival += found[-1].n_read
    return found


def learn_once(model, parts, rng):
    """Let clones of a model that has its target learn a part each; return them as one."""
    models = [sent(model) for _ in parts]
    for one, part in zip(models, parts, strict=True):
        one._learn_part(part)
    return together(models, rng)


def read_again(model, parts, rng, most=1000):
    """Let a model that has learnt parts read them until nothing more is to be read."""
    for _ in range(most):
        reading = model._next_pass()
        if reading is None:
            return
        model._apply_pass(reading, together(read(reading, parts), rng))
    raise AssertionError(f"more than {most} readings")


def learn(model, parts, rng):
    """Let a model that has its target learn parts, and read them again; return what has."""
    model = learn_once(model, parts, rng)
    read_again(model, parts, rng)
    return model
