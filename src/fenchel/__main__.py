"""``python -m fenchel`` is the command ``fenchel``."""

import sys

from fenchel.cli import main

if __name__ == "__main__":
    sys.exit(main())
