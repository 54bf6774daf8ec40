"""``python -m stoker`` is the ``stoker`` command, where its script is not on the path."""

import sys

from stoker.cli import main

if __name__ == "__main__":
    sys.exit(main())
