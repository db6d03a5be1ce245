"""Compiled loops: one family of mathematics a file; nothing else imports numba."""
