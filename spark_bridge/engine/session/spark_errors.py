"""Spark's errors: their text in one line, their cause (the view or the run), and the loss of an epoch's rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, PythonException

from state.errors import RowsLostError

# Start of the part after the message: the query, the plan, the stack of Java.
_END = re.compile(r"\n== SQL|;\n'|;\n\n|\n\s*at [\w.$]+\(|\n\nJVM stacktrace|\n\+-|\nDriver stacktrace")
# The part before the message: py4j's call, and the task and stage that failed.
_BEFORE = re.compile(r".*?\(TID \d+\) \([^)]*\): |An error occurred while calling [\w.:]+\s*:?\s*", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"


_SPARK_EXCEPTION = "org.apache.spark.SparkException"
# The message that Spark itself writes, and not the text of a task.
_ABORTED, _OF_TASK = r"Job aborted due to stage failure: ", r"(?:(?!\(TID ).)*\(TID \d+\) \([^)]*\): "
_CANCELLED = re.compile(rf"Job \d+ cancelled|{_ABORTED}{_OF_TASK}TaskKilled", re.DOTALL)
_DIED = re.compile(
    rf"{_ABORTED}(?:\S+ \d+ \(.*?\) has failed the maximum allowable number of times|Aborting TaskSet|"
    rf"{_OF_TASK}(?:ExecutorLostFailure|FetchFailed|"
    r"java\.lang\.OutOfMemoryError|org\.apache\.spark\.memory\.SparkOutOfMemoryError))",
    re.DOTALL,
)
_INTERRUPTED = frozenset({"java.lang.InterruptedException", "java.nio.channels.ClosedByInterruptException"})
_NO_MEMORY = frozenset({"java.lang.OutOfMemoryError", "org.apache.spark.memory.SparkOutOfMemoryError"})
_OF_RAY = re.compile(r"(?:^|: |Caused by: )io\.ray\.[\w.]+(?:Exception|Error)\b")
_NO_ROOM = "No space left on device"
# Only where Spark itself writes the class of an exception: rows and user functions can have the same text.
_OF_FILES = re.compile(r"java\.n?io\.")
_FULL_DISK = re.compile(
    r"Job aborted due to stage failure: (?:(?!\(TID ).)*\(TID \d+\) \([^)]*\): (?:.*?\n\t[^\n]*\nCaused by: )?"
    rf"java\.n?io\.[\w.$]+: [^\n]*{_NO_ROOM}",
    re.DOTALL,
)
_OUR_TASK = "/spark_bridge/"
# The last line of the traceback of our functions in tasks, when the store has refused or not answered.
_OF_STORE = re.compile(
    r"(?:OSError|IOError|ConnectionError|PermissionError|TimeoutError|RuntimeError: LanceError\(IO\))\b"
)
_CRASHED = "Python worker exited unexpectedly"


def ends_run(error: BaseException) -> bool:
    """True if an error of a living application ends the attempt, as it may have another cause than the view.

    These are cancelled jobs, lost executors, a full memory, lost blocks of Ray, and stores that tasks cannot reach.
    """
    if isinstance(error, PythonException):
        text = str(error)
        return _OUR_TASK in text and _OF_STORE.match(_last_of_traceback(text)) is not None
    return is_death(error) or any(map(_is_cut_off, _causes(error)))


def is_death(error: BaseException) -> bool:
    """True for lost executors and a full memory: the rows of the view may be the cause."""
    return isinstance(error, MemoryError) or any(map(_is_death, _causes(error)))


def is_of_full_disk(error: BaseException) -> bool:
    """True if a disk was full.  A row or the message of a function with the same words does not count."""
    if isinstance(error, PythonException):
        return _last_of_traceback(str(error)).startswith(f"OSError: [Errno 28] {_NO_ROOM}")
    causes = [*_causes(error)]
    if not causes:
        return _NO_ROOM in str(error)
    return any(map(_is_of_full_disk, causes))


def _is_of_full_disk(cause: Any) -> bool:
    kind, message = _said(cause)
    if kind == _SPARK_EXCEPTION:
        return _FULL_DISK.match(message) is not None
    return _OF_FILES.match(kind) is not None and _NO_ROOM in message


def _is_cut_off(cause: Any) -> bool:
    kind, message = _said(cause)
    if kind in _INTERRUPTED or _OF_RAY.search(f"{kind}: {message}"):
        return True
    return kind == _SPARK_EXCEPTION and _CANCELLED.match(message) is not None


def _is_death(cause: Any) -> bool:
    kind, message = _said(cause)
    return kind in _NO_MEMORY or (kind == _SPARK_EXCEPTION and _DIED.match(message) is not None)


def _said(cause: Any) -> tuple[str, str]:
    """The class and the message of a Java exception."""
    return str(cause.getClass().getName()), str(cause.getMessage() or "")


def _causes(error: BaseException) -> Iterator[Any]:
    """Yields the Java exceptions of an error, the outermost first."""
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def reason_of(error: BaseException) -> str:
    """The class and message of an error in the work on a view, in one line."""
    if not isinstance(error, PySparkException | Py4JError):
        return f"{type(error).__name__}: {_spaced(str(error))}"
    if _CRASHED in str(error):
        return f"a Python function of the view ended its process: {one_line(error)}"
    return one_line(error)


def one_line(error: BaseException) -> str:
    """The message of an error of Spark's, without the plan, the stack and the task around it."""
    text = str(getattr(error, "desc", None) or error).strip()
    if _TRACEBACK in text:
        # A Python UDF failed: the last line of its traceback is the reason.
        return _last_of_traceback(text)
    before = _BEFORE.match(text)
    text = _END.split(text[before.end() :] if before else text)[0]
    return _spaced(text).rstrip(";")


def _last_of_traceback(text: str) -> str:
    traceback = re.split(r"\n\s*\n|\n\s*at ", text.partition(_TRACEBACK)[2])[0].strip()
    return traceback.splitlines()[-1].strip() if traceback else ""


def _spaced(text: str) -> str:
    return " ".join(text.split())


OWNER_DIED = "because the actor that had read them died"
"""Why rows of an epoch are lost."""


def rows_lost(where: str, why: str) -> RowsLostError:
    """The error for rows of an epoch that are gone from Ray's object store.

    Args:
        where: the source or view that needs them.
        why: the reason, as a clause.
    """
    return RowsLostError(f"{where}: rows of an epoch are lost, {why}; the run continues from the last epoch")
