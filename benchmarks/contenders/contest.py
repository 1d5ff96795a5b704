"""Starts contenders, each in a process of its own, and compares their answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.contenders.answer import Answer, answer_in

_PROJECT = Path(__file__).parents[2]
PATHWAY = _PROJECT / "build" / "pathway" / "bin" / "python"
_LIMIT_S = 200.0


class Contest:
    """Contenders that must agree with each other.

    Args:
        expected: the result that all must find.
    """

    def __init__(self, expected: Answer) -> None:
        self._expected = expected
        self.answers: dict[str, Answer] = {}
        self.remarks: list[str] = []

    def enter(self, name: str, module: str, *words: str, environment: Mapping[str, str] | None = None) -> None:
        """Runs a contender; one that fails is remarked upon, and the others go on.

        Raises:
            AssertionError: it found something else than the others.
        """
        python = str(PATHWAY) if module == "pathway_stream" else sys.executable
        if not Path(python).exists():
            self.remarks.append(f"{name} took no part: `make pathway` installs it.")
            return
        command = [python, "-m", f"benchmarks.contenders.{module}", *words]
        try:
            done = subprocess.run(
                command,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                timeout=_LIMIT_S,
                cwd=_PROJECT,
                env={**os.environ, "PYTHONPATH": str(_PROJECT), **(environment or {})},
            )
        except subprocess.TimeoutExpired:
            self.remarks.append(f"{name} was ended after {_LIMIT_S:.0f} s.")
        except subprocess.CalledProcessError as error:
            self.remarks.append(f"{name} ended with exit code {error.returncode}.")
        else:
            answer = answer_in(done.stdout)
            self._expected.check(answer, name)
            self.answers[name] = answer
