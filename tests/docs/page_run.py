"""Runs a page as its reader would: blocks in their order, in one directory, with one set of names."""

from __future__ import annotations

import contextlib
import doctest
import io
import shlex
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from slackwater.cli.app import main
from tests.docs.page import Block, Command, blocks, commands, name

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_CHECKER = doctest.OutputChecker()

# Tables are laid out as on a terminal, without colours.
TERMINAL: Mapping[str, str] = {"TTY_COMPATIBLE": "1", "TERM": "dumb", "COLUMNS": "120", "LINES": "50"}


class PageRun:
    """One page, run once.  The process is in the directory where it is to run, with `TERMINAL` in its environment.

    Args:
        page: the file.

    Attributes:
        ran: how many blocks and commands have run.
    """

    def __init__(self, page: Path) -> None:
        self._page = page
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self.ran = 0

    def run(self) -> None:
        """Runs every block that is not marked, and compares what is printed with what the page says."""
        found = blocks(self._page)
        for block, behind in zip(found, [*found[1:], None], strict=True):
            if block.not_run is not None:
                continue
            if block.title is not None:
                Path(block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                printed = self._python(block)
                if behind is not None and behind.language == "text":
                    self._compare(printed, behind.text, behind.line)
            elif block.language == "console":
                for command in commands(block):
                    self._command(command, block.exit_code)

    def _python(self, block: Block) -> str:
        self.ran += 1
        # The lines of the page, so that a traceback names them.
        code = compile("\n" * (block.line - 1) + textwrap.dedent(block.text), str(self._page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self._names)
        return printed.getvalue()

    def _command(self, command: Command, exit_code: int) -> None:
        self.ran += 1
        place = f"{name(self._page)}:{command.line}: {command.text}"
        arguments = shlex.split(command.text, comments=True)[1:]
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
            pytest.raises(SystemExit) as ended,
        ):
            main(arguments)
        code = ended.value.code or 0
        assert code == exit_code, f"{place}\nended with {code}, not {exit_code}:\n{out.getvalue()}\n{err.getvalue()}"
        if command.output:
            self._compare(out.getvalue() + (err.getvalue() if exit_code else ""), command.output, command.line)

    def _compare(self, printed: str, said: str, line: int) -> None:
        if not _CHECKER.check_output(said.strip() + "\n", printed.strip() + "\n", _FLAGS):
            pytest.fail(
                f"{name(self._page)}:{line}: the page says\n{said}\nand this is printed:\n{printed}", pytrace=False
            )


if __name__ == "__main__":
    PageRun(Path(sys.argv[1])).run()
