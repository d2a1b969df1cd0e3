"""``python -m aboveboard``: the command line."""

from aboveboard.cli import main

if __name__ == "__main__":
    main(prog_name="aboveboard")
