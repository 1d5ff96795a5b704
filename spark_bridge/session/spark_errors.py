"""Error texts: Spark's errors in one line, and the loss of an epoch's rows."""

from __future__ import annotations

import re

from state.errors import RowsLostError

# Start of the part after the message: the query, the plan, the stack of Java.
_END = re.compile(r"\n== SQL|;\n'|;\n\n|\n\s*at [\w.$]+\(|\n\nJVM stacktrace|\n\+-|\nDriver stacktrace")
# The part before the message: py4j's call, and the task and stage that failed.
_BEFORE = re.compile(r".*?\(TID \d+\) \([^)]*\): |An error occurred while calling [\w.:]+\s*:?\s*", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"


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


def rows_lost(where: str, why: str) -> RowsLostError:
    """The error for rows of an epoch that are gone from Ray's object store.

    Args:
        where: the source or view that needs them.
        why: the reason, as a clause.
    """
    return RowsLostError(f"{where}: rows of an epoch are lost, {why}; the run continues from the last epoch")
