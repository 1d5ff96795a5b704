"""Spark's errors: in one line, by cause (an expression of the query or not), and the loss of an epoch's rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PythonException

from state.errors import RowsLostError

# Start of the part after the message: the query, the plan, the stack of Java.
_END = re.compile(r"\n== SQL|;\n'|;\n\n|\n\s*at [\w.$]+\(|\n\nJVM stacktrace|\n\+-|\nDriver stacktrace")
# The part before the message: py4j's call, and the task and stage that failed.
_BEFORE = re.compile(r".*?\(TID \d+\) \([^)]*\): |An error occurred while calling [\w.:]+\s*:?\s*", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"


# Classes of SQLSTATE: cardinality, data, constraint, a function's own error, a limit of the language, a raised error.
_OF_VALUES = ("21", "22", "23", "38", "39", "42", "54", "P0")
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
# Code that expressions call: the frames above the expression in a stack.
_CALLED = ("java.", "jdk.", "scala.", "org.apache.spark.unsafe.", "org.apache.spark.sql.errors.",
           "org.apache.spark.sql.types.", "org.apache.spark.sql.catalyst.util.")  # fmt: skip
_WRITER = "/spark_bridge/datasets/"


def is_of_query(error: BaseException) -> bool:
    """Whether an expression of a query failed over its rows: an overflow, a bad cast, a Python function that raises.

    The same rows and the same query fail again.  Errors of Spark itself, of its tasks and of storage are others.
    """
    if isinstance(error, PythonException):
        return _WRITER not in str(error)  # our function that writes rows in a task
    return any(map(_is_of_values, _causes(error)))


def _causes(error: BaseException) -> Iterator[Any]:
    """Yields the Java exceptions of an error, the outermost first."""
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def _is_of_values(cause: Any) -> bool:
    try:
        state = cause.getSqlState()
    except Py4JError:  # it is none of Spark's own
        state = None
    if state is not None:
        return str(state).startswith(_OF_VALUES)
    frames = (str(frame.getClassName()) for frame in cause.getStackTrace())
    thrower = next((frame for frame in frames if not frame.startswith(_CALLED)), "")
    return thrower.startswith(_EXPRESSIONS)


def one_line(error: BaseException) -> str:
    """The message of an error of Spark's, without the plan, the stack and the task around it."""
    text = str(getattr(error, "desc", None) or error).strip()
    if _TRACEBACK in text:
        # A Python UDF failed: the last line of its traceback is the reason.
        traceback = re.split(r"\n\s*\n|\n\s*at ", text.partition(_TRACEBACK)[2])[0]
        return traceback.strip().splitlines()[-1].strip()
    before = _BEFORE.match(text)
    text = _END.split(text[before.end() :] if before else text)[0]
    return " ".join(text.split()).rstrip(";")


OWNER_DIED = "because the actor that had read them died"
"""Why rows of an epoch are lost."""


def rows_lost(where: str, why: str) -> RowsLostError:
    """The error for rows of an epoch that are gone from Ray's object store.

    Args:
        where: the source or view that needs them.
        why: the reason, as a clause.
    """
    return RowsLostError(f"{where}: rows of an epoch are lost, {why}; the run continues from the last epoch")
