"""Targets: encoding, target space, covariates, weights, survival and permutations."""
