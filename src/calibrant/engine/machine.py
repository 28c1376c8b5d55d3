"""One process, one core: how JAX and the linear-algebra libraries are set up before they are imported.

Cohorts of small networks run best in several processes of one thread each; thread pools that each believe they own
the machine cost up to twenty times the work. Compiled programs are kept on disk, one folder per kind of CPU.
"""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
XLA_FLAGS = "--xla_cpu_multi_thread_eigen=false"


def settle() -> None:
    """Call before JAX computes anything. Harmless when called again, or when JAX is already at work."""
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
    if "xla_cpu_multi_thread_eigen" not in os.environ.get("XLA_FLAGS", ""):  # read when JAX first computes
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {XLA_FLAGS}".strip()
    _start_thread_pools()
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        folder = cache_folder()
        jax.config.update("jax_compilation_cache_dir", str(folder / "xla" / cpu_digest()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


@cache
def _start_thread_pools() -> None:
    import jax
    import threadpoolctl

    with one_core():
        jax.devices()
    threadpoolctl.threadpool_limits(1)  # NumPy is usually imported by now, and its pool as wide as the machine


@contextmanager
def one_core() -> Iterator[None]:
    """Thread pools started inside have one thread, because they count the cores the process may use.

    A second thread takes over a few small operations of each step, and both wait for one another: it costs between a
    tenth and two thirds more CPU time and saves no wall time. Afterwards every thread may use all cores again.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread may have ended meanwhile
                os.sched_setaffinity(int(thread.name), allowed)


def cache_folder() -> Path:
    """`$CALIBRANT_CACHE`, else the user's cache folder."""
    given = os.environ.get("CALIBRANT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else base / "calibrant"


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


@cache
def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache
def cpu_digest() -> str:
    """Programs compiled for one CPU must not run on another: the folder names its instruction sets."""
    try:
        flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        flags = ""
    return hashlib.sha256((cpu_name() + flags).encode()).hexdigest()[:12]
