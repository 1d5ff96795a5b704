"""Spark's errors in one line."""

from __future__ import annotations

import re

from state.errors import RunFailedError

# What follows the message proper: the query, the plan, the stack of Java.
_END = re.compile(r"\n== SQL|;\n'|;\n\n|\n\s*at [\w.$]+\(|\n\nJVM stacktrace|\n\+-|\nDriver stacktrace")
# What stands before it: py4j's call, and which task of which stage failed where.
_BEFORE = re.compile(r".*?\(TID \d+\) \([^)]*\): |An error occurred while calling [\w.:]+\s*:?\s*", re.DOTALL)
_TRACEBACK = "Traceback (most recent call last):"


def one_line(error: BaseException) -> str:
    """What an error of Spark's says itself, without the plan, the stack and the task around it."""
    text = str(getattr(error, "desc", None) or error).strip()
    if _TRACEBACK in text:
        # A Python UDF failed: the last line of its traceback says why.
        traceback = re.split(r"\n\s*\n|\n\s*at ", text.partition(_TRACEBACK)[2])[0]
        return traceback.strip().splitlines()[-1].strip()
    before = _BEFORE.match(text)
    text = _END.split(text[before.end() :] if before else text)[0]
    return " ".join(text.split()).rstrip(";")


def rows_lost(where: str, why: str) -> RunFailedError:
    """What to say of an epoch whose rows are gone from Ray's object store.

    Args:
        where: the source or view that misses them.
        why: how they may have gone.
    """
    return RunFailedError(f"{where}: rows of an epoch are lost, {why}; the run goes on from the last epoch")
