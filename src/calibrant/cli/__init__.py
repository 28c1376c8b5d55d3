"""The command line: parse, call, print. Nothing numerical is imported before a command needs it."""

from __future__ import annotations

import sys

USAGE, INTERRUPTED = 2, 130


def main() -> None:
    """Exit codes: 0 all done, 1 some cells failed, 2 wrong usage or input, 130 interrupted and resumable."""
    from calibrant.types import CalibrantError

    try:
        from calibrant.cli.app import app

        app()
    except CalibrantError as error:
        print(f"calibrant: {error}", file=sys.stderr)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
