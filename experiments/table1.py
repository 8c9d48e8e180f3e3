"""``fenchel reproduce table1`` as a script; ``--help`` lists its options."""

import sys

from fenchel.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "table1", *sys.argv[1:]]))
