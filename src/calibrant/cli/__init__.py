"""The command line: parse, call, print. Nothing numerical is imported before a command needs it."""

from __future__ import annotations

import os
import signal
import sys
import threading

USAGE, INTERRUPTED = 2, 130
AGAIN_SECONDS = 0.05


def main() -> None:
    """Exit codes: 0 all done, 1 some cells failed, 2 wrong usage or input, 130 interrupted and resumable."""
    from calibrant.types import CalibrantError

    sys.unraisablehook = _keep_interrupts
    try:
        from calibrant.cli.app import app

        app()
    except CalibrantError as error:
        print(f"calibrant: {error}", file=sys.stderr)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _keep_interrupts(ignored: sys.UnraisableHookArgs) -> None:
    """Ctrl-C inside a callback of the garbage collector, as JAX has one, is ignored by Python: send it once more."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)
