"""Log events: constant texts, the same words for the same things, and a logger's name on each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import ONE_PROCESS, REPOSITORY, trees

pytestmark = ONE_PROCESS
_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
_PAGE = REPOSITORY / "docs" / "guide" / "logs.md"
_ROW = re.compile(r"^\| (?P<event>[^|]+) \| (?P<level>\w+) \| (?P<fields>[^|]+) \|$", re.MULTILINE)
Line = tuple[str, str, frozenset[str]]


def _calls() -> Iterator[tuple[Path, ast.Call]]:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield path, node


def _makes_a_logger(call: ast.expr) -> bool:
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "get_logger"


def _is_a_line(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LEVELS:
        return False
    logger = call.func.value
    name = logger.attr if isinstance(logger, ast.Attribute) else logger.id if isinstance(logger, ast.Name) else ""
    return name in ("_log", "log") or _makes_a_logger(logger)


def _logged() -> Iterator[tuple[Path, ast.Call]]:
    return ((path, call) for path, call in _calls() if _is_a_line(call))


def test_an_event_is_a_constant_and_what_varies_has_a_name() -> None:
    for path, call in _logged():
        assert len(call.args) == 1 and isinstance(call.args[0], ast.Constant), f"{path}:{call.lineno}"


def test_the_documented_events_are_those_that_are_logged() -> None:
    logged: set[Line] = set()
    for _, call in _logged():
        assert isinstance(call.func, ast.Attribute) and isinstance(call.args[0], ast.Constant)
        fields = frozenset(keyword.arg for keyword in call.keywords if keyword.arg is not None)
        logged.add((str(call.args[0].value), call.func.attr, fields))
    text = _PAGE.read_text().split("|---|---|---|\n")[-1]
    documented: set[Line] = {
        (row["event"], row["level"], frozenset(re.findall(r"`(\w+)`", row["fields"]))) for row in _ROW.finditer(text)
    }
    assert logged == documented
    events = [row["event"] for row in _ROW.finditer(text)]
    assert events == sorted(events)


@pytest.mark.more
def test_every_line_says_who_speaks() -> None:
    for path, call in _calls():
        if not _makes_a_logger(call):
            continue
        bound = {
            keyword.arg
            for other in ast.walk(trees()[path])
            if isinstance(other, ast.Call) and isinstance(other.func, ast.Attribute)
            if other.func.attr == "bind" and other.func.value is call
            for keyword in other.keywords
        }
        assert "actor" in bound | {keyword.arg for keyword in call.keywords}, f"{path}:{call.lineno}"
