"""Every block of code in the README and the documentation is Python, or a command, that there is."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import slackwater
from slackwater.cli.app import app
from slackwater.reading.ledger import Ledger
from slackwater.reading.views import Views
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
_PUBLIC = re.compile(r"sw\.(\w+(?:\.\w+)?)")
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
    unknown = [used for used in _public_names(tree) if not _is_public(used)]
    assert not unknown, f"{name(page)}:{block.line}: slackwater has no {', '.join(unknown)}"
    unknown = [used for used in _store_names(tree) if _of_store(used) is None]
    assert not unknown, f"{name(page)}:{block.line}: a store has no {', '.join(unknown)}"
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        unknown = list(_unknown_options(call))
        assert not unknown, f"{name(page)}:{block.line}: {ast.unparse(call.func)} takes no {', '.join(unknown)}"


def _public_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (match := _PUBLIC.fullmatch(ast.unparse(node))):
            yield match[1]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "slackwater":
            yield from (f"{node.module}.{alias.name}".removeprefix("slackwater.") for alias in node.names)


def _store_names(tree: ast.AST) -> Iterator[str]:
    """The attributes of `store`, and of what `sw.open(...)` returns; `ledger.files` for a method of a part."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            text = re.sub(r"^sw\.open\(.*?\)\.", "store.", ast.unparse(node))
            if match := re.fullmatch(r"store\.(\w+(?:\.\w+)?)", text):
                yield match[1]


def _of_store(name: str) -> Any:
    """The method or property of a `Store` with this name, or of its `ledger` or `views`; None for an unknown name."""
    owner, _, last = name.rpartition(".")
    parts = {"": slackwater.Store, "ledger": Ledger, "views": Views}
    return getattr(parts[owner], last, None) if owner in parts else "of a value that a method returns"


@pytest.mark.parametrize("page", _PAGES, ids=name)
def test_prose_names_only_what_slackwater_has(page: Path) -> None:
    names = re.findall(r"(?<![\w./])sw\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)", page.read_text(encoding="utf-8"))
    assert [each for each in names if not _is_public(each)] == []


def _is_public(name: str) -> bool:
    """Whether `slackwater` lists the name, or for `errors.NAME` its module."""
    owner, _, last = name.rpartition(".")
    if not owner:
        return last in slackwater.__all__
    value = getattr(slackwater, owner, None) or import_module(f"slackwater.{owner}")
    return last in getattr(value, "__all__", dir(value))


def _unknown_options(call: ast.Call) -> Iterator[str]:
    """Keyword arguments that a class of ours, or a method of a pipeline, does not take."""
    first, _, name = ast.unparse(call.func).partition(".")
    owners = {"sw": slackwater, "pipeline": slackwater.Pipeline, "run": slackwater.Run, "store": slackwater.Store}
    if first not in owners or not re.fullmatch(r"\w+(\.\w+)?", name):
        return
    target: Any = reduce(lambda owner, part: getattr(owner, part, None), name.split("."), owners[first])
    target = _of_store(name) if first == "store" else target
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
    for wrong in ("Nothing", "OwnedError", "errors.Nothing", "errors.visible", "settings.Mapping", "Pipeline.nothing"):
        assert wrong in _public_names(ast.parse(f"import slackwater as sw\nsw.{wrong}()"))
        assert not _is_public(wrong), wrong
    assert all(map(_is_public, ("Pipeline", "Pipeline.source", "errors.OwnedError", "formats.Rows")))
    assert list(_public_names(ast.parse("from slackwater.formats import Rows"))) == ["formats.Rows"]
    for wrong in ("store.files('a')", "sw.open('a').files()", "store.ledger.view_costs()"):
        assert [_of_store(each) for each in _store_names(ast.parse(wrong))][:1] == [None], wrong
    assert _of_store("ledger.files") is Ledger.files
    for wrong in ("sw.Listing(interval=1)", "sw.settings.FetchSettings(interval=1)", "store.ledger.files(interval=1)"):
        call = ast.parse(wrong).body[0]
        assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
        assert list(_unknown_options(call.value)) == ["interval"], wrong
    with pytest.raises(Exception, match="--untl"):
        _COMMANDS.commands["run"].make_context("run", ["app.py:pipeline", "--untl", "caught_up"])
    with pytest.raises(AssertionError, match="--limitt"):
        _check_synopsis("slackwater epochs ROOT [--limitt N]")
