"""Pages of the documentation as data: blocks of code, commands, and the output that they promise.

    ```python                  runs; a block ```text right behind it is what it prints
    ```python title="app.py"   is written to that file
    ```console                 lines that begin with `$ slackwater` run; the lines behind one are what it prints
    <!-- not run: why -->      above a block: it is only compiled, or parsed
    <!-- exit code: 1 -->      above a block of commands: what each of them ends with
    <!-- run: code -->         code that is not shown

In an output `...` stands for anything, and any white space for any other, as in doctest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.repository import REPOSITORY

DOCS = REPOSITORY / "docs"
_BLOCK = re.compile(
    r"^(?P<fence>```)(?P<language>\w*)(?P<options>[^\n]*)\n(?P<text>.*?)^```$"
    r"|^<!-- (?P<mark>not run|exit code|run): ?(?P<said>.*?)-->$",
    re.DOTALL | re.MULTILINE,
)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """One block of a page.

    Args:
        line: of its first line in the page, from 1.
        language: what the fence says; empty for none.
        text: without the fences.
        title: the file that it is.
        not_run: why it cannot run here.
        exit_code: what its commands end with.
    """

    line: int
    language: str
    text: str
    title: str | None = None
    not_run: str | None = None
    exit_code: int = 0


@dataclass(frozen=True)
class Command:
    """One command line in a block, and what it is said to print."""

    line: int
    text: str
    output: str


def pages(*folders: str) -> list[Path]:
    """The README and every page of the documentation; with folders, the README and those below them."""
    found = sorted(path for path in DOCS.rglob("*.md") if not folders or path.relative_to(DOCS).parts[0] in folders)
    return [REPOSITORY / "README.md", *found]


def name(page: Path) -> str:
    """A page as tests call it."""
    return page.relative_to(REPOSITORY).as_posix() if page.is_relative_to(REPOSITORY) else page.name


def blocks(page: Path) -> list[Block]:
    """Everything in a page that can be run or parsed, in order.

    Raises:
        ValueError: a fence that is not closed, or a mark with no block behind it.
    """
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    marks: dict[str, str] = {}
    fences = 0
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["mark"] == "run":
            found.append(Block(line, "python", match["said"]))
        elif match["mark"]:
            marks[match["mark"]] = " ".join(match["said"].split())
        else:
            fences += 2
            title = _TITLE.search(match["options"])
            not_run, exit_code = marks.pop("not run", None), int(marks.pop("exit code", 0))
            found.append(
                Block(line + 1, match["language"], match["text"], title[1] if title else None, not_run, exit_code)
            )
    if marks:
        raise ValueError(f"{name(page)}: <!-- {' and '.join(marks)} --> stands above no block")
    if fences != len(re.findall(r"^ *```", text, re.MULTILINE)):
        raise ValueError(f"{name(page)}: a fence is not closed, or is indented")
    return found


def commands(block: Block) -> Iterator[Command]:
    """The command lines of a block that call `slackwater`; a backslash at an end joins two lines."""
    lines = block.text.split("\n")
    at = 0
    while at < len(lines):
        begin = at
        call = lines[at].removeprefix("$ ")
        prompted = call != lines[at]
        at += 1
        while call.endswith("\\") and at < len(lines):
            call = call[:-1] + " " + lines[at].strip()
            at += 1
        if not call.startswith("slackwater "):
            continue
        output = []
        while prompted and at < len(lines) and not lines[at].startswith("$ "):
            output.append(lines[at])
            at += 1
        yield Command(block.line + begin, call, "\n".join(output).strip())
