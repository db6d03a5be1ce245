"""Slow, obvious programs written from the formulas: what the package is compared with."""
