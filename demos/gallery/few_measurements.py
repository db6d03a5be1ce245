"""How many of 30 measurements does a diagnosis need?

Data: breast cancer, 569 patients, two classes (scikit-learn). A pipeline selects the measurements
inside every fold, so that the test rows of a fold have no part in the selection.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamsel.sklearn import ForwardSelection

X, y = load_breast_cancer(return_X_y=True, as_frame=True)


def accuracy(*steps: object) -> float:
    model = make_pipeline(*steps, StandardScaler(), LogisticRegression())
    return cross_val_score(model, X, y, cv=10).mean()


for k in (1, 2, 3, 5):
    print(f"{k:>2} selected: {accuracy(ForwardSelection(k=k)):.1%}")
print(f"{X.shape[1]:>2}, all of them: {accuracy():.1%}")
print("the first three:", ", ".join(ForwardSelection(k=3).fit(X, y).get_feature_names_out()))
