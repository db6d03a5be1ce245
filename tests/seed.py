"""What chooses the modes and cases of the conformance tests in a run."""

import os

# Every seed runs another sample; this one runs all modes and cases.
EVERYTHING = "all"
SEED = os.environ.get("STREAMSEL_TEST_SEED", "0")
