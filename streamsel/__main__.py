"""`python -m streamsel` is the command."""

from streamsel.cli import main

if __name__ == "__main__":
    main()
