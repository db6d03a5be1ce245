"""Tests, which run with one thread of BLAS: its results may differ in the last bits with several.

The workers of pytest-xdist use all cores. The variable is set before NumPy is imported.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
