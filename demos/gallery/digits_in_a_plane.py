"""Which two components separate six digits best?

Data: digits 0 to 5, 1,083 images of 64 pixels (scikit-learn). Components are learnt from one half
of the images; the other half is classified by its 15 nearest neighbours in the plane of the two
components. `digits_in_a_plane.py FILE.svg` saves a plot of the last method.
"""

import sys

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from streamsel import PCA, Discriminant, RidgeComponents, plot

X, y = load_digits(n_class=6, return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

for model in (PCA(2), RidgeComponents(2), Discriminant(2)):
    if not isinstance(model, PCA):
        model.learn_target(y_train)
    model.learn_columns(X_train)
    train, test = (model.transform_many(part) for part in (X_train, X_test))
    score = KNeighborsClassifier(15).fit(train, y_train).score(test, y_test)
    print(f"{type(model).__name__:<15} {score:.1%}")

if len(sys.argv) > 1:
    plot.scatter(model, X_test, y_test).figure.savefig(sys.argv[1], bbox_inches="tight")
