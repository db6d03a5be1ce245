"""Would the same variables be selected with other samples?

Data: breast cancer, 569 patients, 30 measurements (scikit-learn). Each method selects five of them
on 50 random halves of the patients. Nogueira's index is 1 for identical selections, and 0 on
average for random ones.
"""

from sklearn.datasets import load_breast_cancer

from streamsel import MRMR, ForwardSelection, Lasso, SelectKBest
from streamsel.evaluate import subsample_stability

data = load_breast_cancer(as_frame=True)
y = data.target_names[data.target]

for model in (SelectKBest(5), ForwardSelection(5), MRMR(5), Lasso(5)):
    result = subsample_stability(model, data.data, y)
    index = result.index
    print(f"{type(model).__name__:<16} {index.value:.2f} ({index.low:.2f} to {index.high:.2f})")
    frequent = [name for name, share in result.frequency.items() if share >= 0.9]
    print(f"  in 90 % of the halves: {', '.join(frequent) or 'none'}")
