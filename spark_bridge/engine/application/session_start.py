"""The interface of the ways to start a Spark application on Ray, and the settings of an application."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession

Step = Callable[[str], AbstractContextManager[Any]]
"""Reports a step of the start by its name; the step lasts as long as the context."""


@dataclass(frozen=True)
class ApplicationSpec:
    """An application.

    Args:
        name: unique within the Ray cluster.
        configs: Spark's settings, except the settings of the executors.
        num_executors: their number.
        executor_cores: cores of each executor.
        executor_memory: memory of each executor, as Java writes it (`"1g"`).
    """

    name: str
    configs: dict[str, str] = field(repr=False)
    num_executors: int
    executor_cores: int
    executor_memory: str


class SessionStart(Protocol):
    """A way to start the processes of one application, and to end them.

    Order of calls: `launch`, `session`, `stop` if `session` has returned, `end_driver`, `ended`.
    """

    def launch(self, ray_is_up: Callable[[], bool]) -> None:
        """Begins what needs no Ray.  Returns at once.

        Args:
            ray_is_up: whether `ray.init` is over; it may run meanwhile.
        """

    def session(self) -> SparkSession:
        """Starts the rest.  Ray must be up.  Blocks without a limit."""

    def stop(self) -> None:
        """Ends the session and its executors in order.  Blocks without a limit if a JVM does not answer."""

    def end_driver(self) -> None:
        """Ends the driver's JVM, even a frozen one, within seconds."""

    def is_executor(self, actor: str, namespace: str) -> bool:
        """True if a named actor of Ray is an executor of this application."""

    def ended(self) -> None:
        """Is called when all processes have ended, in less than a second; not after a start that failed."""
