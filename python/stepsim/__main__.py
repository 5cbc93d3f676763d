"""`stepsim` and `python -m stepsim`: the program itself, in place of this process."""

import os
import sys

import stepsim


def main() -> None:
    try:
        program = stepsim.program()
    except stepsim.Error as error:
        sys.exit(f"stepsim: {error}")
    os.execv(program, ["stepsim", *sys.argv[1:]])


if __name__ == "__main__":
    main()
