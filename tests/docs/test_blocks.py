"""Every block of code in the README and the documentation is Python, or a command, that there is."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import slackwater
from slackwater.cli.app import app
from spark_bridge.plans.view_definition import ViewOptions
from tests.docs.page import Block, Command, blocks, commands, name, pages

_PAGES = pages()
_PYTHON = [(page, block) for page in _PAGES for block in blocks(page) if block.language == "python"]
_SHELL = [
    (page, block, command)
    for page in _PAGES
    for block in blocks(page)
    if block.language in ("", "console", "sh")
    for command in commands(block)
]
_COMMANDS: Any = get_command(app)
# `[--limit N]`, `pause | resume`, `N|N-M`, `...`: a synopsis, not a call.
_SYNOPSIS = re.compile(r"[\[|]|\.\.\.")


def _place(value: object) -> str:
    if isinstance(value, Path):
        return name(value)
    if isinstance(value, Block):
        return str(value.line)
    return f"{value.line}" if isinstance(value, Command) else str(value)


@pytest.mark.parametrize(("page", "block"), _PYTHON, ids=_place)
def test_python_compiles_and_names_only_what_slackwater_has(page: Path, block: Block) -> None:
    tree = ast.parse(block.text)
    unknown = [used for used in _public_names(tree) if used not in slackwater.__all__]
    assert not unknown, f"{name(page)}:{block.line}: slackwater has no {', '.join(unknown)}"
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        unknown = list(_unknown_options(call))
        assert not unknown, f"{name(page)}:{block.line}: {ast.unparse(call.func)} takes no {', '.join(unknown)}"


def _public_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sw":
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "slackwater":
            yield from (alias.name for alias in node.names)


def _unknown_options(call: ast.Call) -> Iterator[str]:
    """Keyword arguments that a class of ours, or a method of a pipeline, does not take."""
    called = call.func
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return
    owner = {"sw": slackwater, "pipeline": slackwater.Pipeline, "run": slackwater.Run}.get(called.value.id)
    target = getattr(owner, called.attr, None)
    if target is None:
        return
    taken = set(inspect.signature(target).parameters)
    if "options" in taken:
        taken |= set(ViewOptions.__annotations__)
    yield from (each.arg for each in call.keywords if each.arg is not None and each.arg not in taken)


@pytest.mark.parametrize(("page", "block", "command"), _SHELL, ids=_place)
def test_a_command_line_is_one_that_slackwater_takes(page: Path, block: Block, command: Command) -> None:
    text = _without_pipe(command.text)
    if _SYNOPSIS.search(text.partition("#")[0]):
        _check_synopsis(text)
        return
    words = shlex.split(text, comments=True)[1:]
    if words == ["--version"]:
        return
    assert words[0] in _COMMANDS.commands, f"there is no command {words[0]}"
    # Raises what a user would be told.
    _COMMANDS.commands[words[0]].make_context(words[0], words[1:])


def _without_pipe(text: str) -> str:
    """What comes before a pipe to another program; in `pause | resume` both are commands of ours."""
    first, _, behind = text.partition(" | ")
    return first if behind and behind.split()[0] not in _COMMANDS.commands else text


def _check_synopsis(line: str) -> None:
    """Of a synopsis every command and every option is there."""
    text = line.partition("#")[0]
    named = text.removeprefix("slackwater ").split(" ROOT")[0].split(" APP")[0]
    words = re.findall(r"(?<![-\w.])[a-z]+(?:-[a-z]+)*(?![-\w.:])", named)
    known = [word for word in words if word in _COMMANDS.commands]
    assert known, f"no command in {text!r}"
    options = {option for each in known for parameter in _COMMANDS.commands[each].params for option in parameter.opts}
    missing = set(re.findall(r"(?<!\S)\[?(--?[a-z][a-z-]*)", text)) - options - {"--help"}
    assert not missing, f"{'/'.join(known)} has no {', '.join(sorted(missing))}"


def test_what_is_not_run_is_so_for_a_reason() -> None:
    for page in pages("tutorial", "howto"):
        for block in blocks(page):
            assert block.not_run is None or len(block.not_run) > 10, f"{name(page)}:{block.line}: say why"


def test_a_name_a_command_and_an_option_that_there_is_not_are_found(tmp_path: Path) -> None:
    (unknown,) = _public_names(ast.parse("import slackwater as sw\nsw.Nothing()"))
    assert unknown not in slackwater.__all__
    call = ast.parse("sw.Listing(interval=1)").body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert list(_unknown_options(call.value)) == ["interval"]
    with pytest.raises(Exception, match="--untl"):
        _COMMANDS.commands["run"].make_context("run", ["app.py:pipeline", "--untl", "caught_up"])
    with pytest.raises(AssertionError, match="--limitt"):
        _check_synopsis("slackwater epochs ROOT [--limitt N]")
