"""Does a model on a stream notice that another sensor has become the informative one?

Data: 4,000 generated rows of 30 sensors. After half of the rows the target equals sensor 20 instead
of sensor 3. With `fading_factor` the weight of a row decreases with its age.
`change_of_sensors.py FILE.svg` saves a plot of the sensor in use.
"""

import sys

import numpy as np
from river import linear_model, metrics, preprocessing

from streamsel import History, ProjSe, plot

rows = np.random.default_rng(0).normal(size=(4_000, 30)).tolist()
histories = {
    "no fading": History(ProjSe(k=1)),
    "fading": History(ProjSe(k=1, fading_factor=0.005, refresh_factor=1.25)),
}
for name, history in histories.items():
    model = history | preprocessing.StandardScaler() | linear_model.LinearRegression()
    before, after = metrics.MAE(), metrics.MAE()
    for t, row in enumerate(rows):
        x = dict(enumerate(row))
        sensor, error = (3, before) if t < 2_000 else (20, after)
        error.update(x[sensor], model.predict_one(x))
        model.learn_one(x, x[sensor])
    print(f"{name:<10} error {before.get():.2f}, after the change {after.get():.2f}")
for name, history in histories.items():
    uses = (f"sensor {event.entered[0]} from row {event.row:,}" for event in history.events)
    print(f"{name:<10} {', '.join(uses)}")

if len(sys.argv) > 1:
    plot.history(histories["fading"]).figure.savefig(sys.argv[1], bbox_inches="tight")
