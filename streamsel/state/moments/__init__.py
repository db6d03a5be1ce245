"""Moments of variables over rows, and of columns merged into them."""
