"""Is any of 20,000 rare variants associated with a disease?

Data: generated counts of rare variants in 400 people, 15 of them cases. No variant is associated
with the disease. A noise floor should be exceeded by a variant in at most 5 % of such studies.
"""

import numpy as np

from streamsel import SelectKBest

rng = np.random.default_rng(0)
frequency = rng.uniform(0.002, 0.02, size=20_000)
X = rng.binomial(2, frequency, size=(400, frequency.size)).astype(float)
y = np.where(np.arange(400) < 15, "case", "control")

model = SelectKBest(k=10, permutations=1000)
model.learn_target(y)
model.learn_columns(X)

relevance = np.array([model.relevance[j] for j in model.selected])
for name, method in (("Gaussian", "gaussian"), ("permutations", "permutation")):
    threshold = model.noise_floor(method=method)
    n_above = (relevance > threshold).sum()
    print(f"{name:<13} noise floor {threshold:.3f}, {n_above} of the best 10 exceed it")
