"""Learn columns in parts, with further passes, like processes that share no memory."""

import itertools
import pickle

import numpy as np

from streamsel.stream import as_stream


def cut(p, rng):
    """Return indices at which p columns are cut into parts, some possibly empty."""
    inner = rng.integers(0, p + 1, int(rng.integers(0, 9)))
    return [0, *np.sort(inner).tolist(), p]


def streams(X, edges):
    """Return the parts of X, each a stream of columns with their indices in X as names."""
    return [
        as_stream(X[:, start:stop], range(start, stop)) for start, stop in itertools.pairwise(edges)
    ]


def pickled(thing):
    """Return the bytes that represent an object in a message."""
    return pickle.dumps(thing)


def sent(thing):
    """Return an object after a round trip through pickle."""
    return pickle.loads(pickled(thing))  # noqa: S301


def together(found, rng):
    """Return one result, merged from neighbours in random order."""
    while len(found) > 1:
        j = int(rng.integers(len(found) - 1))
        found[j].merge(found.pop(j + 1))
    return found[0]


def read(further_pass, parts):
    """Return the results of a pass over every part."""
    found, arrival = [], 0
    for part in parts:
        found.append(sent(sent(further_pass).read(part, arrival)))
        arrival += found[-1].n_read
    return found


def learn_once(model, parts, rng):
    """Return one model, merged from clones that have each learnt a part."""
    models = [sent(model) for _ in parts]
    for one, part in zip(models, parts, strict=True):
        one._learn_part(part)
    return together(models, rng)


def read_again(model, parts, rng, most=1000):
    """Make passes over all parts until the model requires no more."""
    for _ in range(most):
        further_pass = model._next_pass()
        if further_pass is None:
            return
        model._apply_pass(further_pass, together(read(further_pass, parts), rng))
    raise AssertionError(f"more than {most} passes")


def learn(model, parts, rng):
    """Return the model after it has learnt parts and made all further passes."""
    model = learn_once(model, parts, rng)
    read_again(model, parts, rng)
    return model
