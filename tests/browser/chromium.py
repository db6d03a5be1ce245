"""Find the Chromium of the system, and start it."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")


def launch(playwright):
    """Begin the browser; say what to do where there is none."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise FileNotFoundError(
            f"Expected one of {', '.join(NAMES)} on the PATH. Got: none.\n"
            "Hint: apt-get install chromium."
        )
    # Inside a container a sandbox of its own is not to be had.
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
