"""Compiled kernels: one family of algorithms per file; no other package imports numba."""
