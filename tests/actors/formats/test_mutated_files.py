"""A fuzz test of every reader: 20,000 mutations of small files end in rows or in documented errors, within limits."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.actors.formats.mutated_files import KINDS
from tests.repository import REPOSITORY

_SEED = 7
_MUTATIONS = 20_000
_OF_ONE_PROCESS = 500


def _fuzz(kinds: str, first: int, count: int) -> None:
    arguments = [sys.executable, "-m", "tests.actors.formats.mutated_files", kinds, str(_SEED), str(first), str(count)]
    ended = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    last = ended.stdout.splitlines()[-1] if ended.stdout else "no mutation"
    assert ended.returncode == 0, f"{kinds} ended with {ended.returncode} in mutation {last}:\n{ended.stderr[-4_000:]}"


def test_a_few_mutations_of_each_format_do_no_harm() -> None:
    _fuzz(",".join(KINDS), 0, 25)


@pytest.mark.more
@pytest.mark.parametrize("part", range(_MUTATIONS // len(KINDS) // _OF_ONE_PROCESS))
@pytest.mark.parametrize("kind", KINDS)
def test_no_mutation_does_more_than_make_a_file_unreadable(kind: str, part: int) -> None:
    _fuzz(kind, part * _OF_ONE_PROCESS, _OF_ONE_PROCESS)
