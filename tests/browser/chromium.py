"""Find the Chromium of the system, and start it."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")


def launch(playwright):
    """Start the browser; raise with a hint if there is none."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise FileNotFoundError(
            f"Expected one of {', '.join(NAMES)} on the PATH. Got: none.\n"
            "Hint: apt-get install chromium."
        )
    # Chromium cannot start its own sandbox inside a container.
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
