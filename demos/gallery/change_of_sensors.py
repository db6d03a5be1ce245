"""Does a model on a stream notice that another sensor has become the informative one?

Data: generated, 4,000 rows of 30 sensors. After half of the rows the target follows sensor 20
instead of sensor 3. Old rows fade with `fading_factor`. `change_of_sensors.py FILE.svg` saves a
plot of the sensor in use.
"""

import sys

import numpy as np
from river import linear_model, metrics, preprocessing

from streamsel import History, ProjSe, plot

rng = np.random.default_rng(0)
constant = History(ProjSe(k=1))
fading = History(ProjSe(k=1, fading_factor=0.005, refresh_factor=1.25))
for name, selector in (("no fading", constant), ("fading", fading)):
    model = selector | preprocessing.StandardScaler() | linear_model.LinearRegression()
    before, after = metrics.MAE(), metrics.MAE()
    for t, row in enumerate(np.random.default_rng(0).normal(size=(4_000, 30))):
        x = dict(enumerate(row.tolist()))
        y = x[3 if t < 2_000 else 20]
        (before if t < 2_000 else after).update(y, model.predict_one(x))
        model.learn_one(x, y)
    print(f"{name:<10} error {before.get():.2f}, after the change {after.get():.2f}")
for name, history in (("no fading", constant), ("fading", fading)):
    uses = (f"sensor {event.entered[0]} from row {event.row:,}" for event in history.events)
    print(f"{name:<10} {', '.join(uses)}")

if len(sys.argv) > 1:
    plot.history(fading).figure.savefig(sys.argv[1], bbox_inches="tight")
