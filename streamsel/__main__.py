"""Run the command: `python -m streamsel`."""

from __future__ import annotations

from streamsel.cli import main

if __name__ == "__main__":
    main()
