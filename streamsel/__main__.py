"""Run the command: `python -m streamsel`."""

from streamsel.cli import main

if __name__ == "__main__":
    main()
