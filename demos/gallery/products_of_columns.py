"""Do products of columns predict the progression of diabetes better than the columns do?

Data: diabetes, 442 patients, ten columns (scikit-learn). The columns and their products up to
degree 3 are generated during the selection. Columns are selected, and a regression is fitted, on
one half of the patients; R² is computed on the other.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import streamsel
from streamsel import stream

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)


def r_squared(degree: int, k: int) -> tuple[int, float]:
    """Return the number of candidate columns, and R² of the k selected ones."""
    candidates = stream.iter_polynomials(X_train, degree=degree)
    selected = streamsel.select(candidates, y_train, k=k, method="ForwardSelection").selected
    names = [name if isinstance(name, tuple) else (name,) for name in selected]
    train, test = (
        np.column_stack([table[list(factors)].prod(axis=1) for factors in names])
        for table in (X_train, X_test)
    )
    return candidates.n_columns, LinearRegression().fit(train, y_train).score(test, y_test)


for degree in (1, 2, 3):
    for k in (3, 6):
        n_columns, score = r_squared(degree, k)
        print(f"degree {degree}, {k} of {n_columns:>3} columns: R² {score:.2f}")
