"""Files are written whole or not at all: whoever reads an older one at the same path never sees half of the new."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from calibrant.types import CalibrantError


def write_whole(path: Path, content: bytes) -> None:
    if path.is_dir():
        raise CalibrantError(f"cannot write '{path}': it is a directory")
    beside = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise CalibrantError(f"cannot write '{path}': {error.strerror or error}") from error
