"""Files that arrive in a directory one at a time.  Only the standard library, as in `answer.py`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

_PATIENCE_S = 60.0


def pauses() -> Callable[[], float]:
    """Seconds between a file that was taken and the next: the same for every contender, and in step with none."""
    rng = random.Random(1)
    return lambda: rng.random() * 0.3


def arrivals(directory: Path, rows_of_file: int, rows_taken: Callable[[], int]) -> tuple[float, ...]:
    """Moves each file of `ready` into `in`, and waits until its rows are in the result.

    Args:
        directory: with `ready` and `in` on one file system.
        rows_of_file: of each of them.
        rows_taken: gives the number of rows that the result counts now.

    Returns:
        Seconds of each file.

    Raises:
        TimeoutError: rows did not come within a minute.
    """
    pause, taken = pauses(), []
    for number, file in enumerate(sorted((directory / "ready").iterdir()), 1):
        file.rename(directory / "in" / file.name)
        started = time.perf_counter()
        while rows_taken() < number * rows_of_file:
            if time.perf_counter() - started > _PATIENCE_S:
                raise TimeoutError(f"{file.name} is not in the result after {_PATIENCE_S:.0f} s")
            time.sleep(0.002)
        taken.append(time.perf_counter() - started)
        time.sleep(pause())
    return tuple(taken)
