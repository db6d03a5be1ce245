"""Plots of selections over time show exactly the recorded spans."""

import numpy as np
import pytest

from streamsel import PCA, History, ProjSe, RandomProjection, SelectKBest, plot


def learnt(learner, n=300):
    history = History(learner)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    for row, x in enumerate(X.tolist()):
        y = x[row // 75] + 0.1 * rng.normal()
        history.learn_one(dict(enumerate(x)), y) if learner._is_supervised else history.learn_one(
            dict(enumerate(x))
        )
    return history


def drawn(ax):
    """Return the first and the last row of each span, by name."""
    names = [text.get_text() for text in ax.get_yticklabels()]
    bars = {part.get_gid(): part for part in ax.collections}
    found = {}
    for index, name in enumerate(names):
        boxes = [path.get_extents() for path in bars[f"name {index}"].get_paths()]
        assert all(box.y0 < index < box.y1 for box in boxes)
        found[name] = [(box.x0, box.x1) for box in boxes]
    return found


def test_spans_in_use_are_drawn():
    history = learnt(SelectKBest(k=2, fading_factor=0.05, refresh_factor=1.2))
    ax = plot.history(history)
    spans = history.spans()
    assert len(spans) > 3
    assert drawn(ax) == {str(name): parts for name, parts in spans.items()}
    assert ax.get_xlim() == (0, 300)
    colours = {
        name: tuple(ax.collections[index].get_facecolor()[0]) for index, name in enumerate(spans)
    }
    now = {colours[name] for name in history.in_use}
    assert len(now) == 1
    assert not now & {colours[name] for name in spans if name not in history.in_use}


def test_refreshes_of_components_are_drawn():
    history = learnt(PCA(n_components=2, warm_up=10))
    ax = plot.history(history)
    lines = [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "refresh"]
    assert lines == [event.row for event in history.events]


def test_only_the_longest_spans_are_drawn():
    history = History(SelectKBest(k=3))
    history._initial_names = dict.fromkeys(range(300))
    history._initial_row = -1
    history.learn_one({0: 1.0}, 1.0)
    ax = plot.history(history)
    assert len(ax.collections) == 200
    assert "100 are left out" in ax.get_label()


@pytest.mark.parametrize("learner", [ProjSe(), RandomProjection()], ids=str)
def test_history_without_variables_in_use_is_refused(learner):
    with pytest.raises(ValueError, match=r"Expected a history with variables in use\. Got: "):
        plot.history(History(learner))


@pytest.mark.parametrize("what", [ProjSe(), 3, None, History])
def test_other_objects_are_refused(what):
    with pytest.raises(TypeError, match=r"Expected a History\. Got: .*\nHint: "):
        plot.history(what)
