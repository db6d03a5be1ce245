"""Slow, simple implementations of the definitions, with which the package is compared."""
