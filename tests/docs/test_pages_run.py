"""Tests of the README, the tutorial and the how-to pages: their code runs, and prints what stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.plugins.demo.flights import day_files
from slackwater.testing.servers.s3_server import S3Server
from tests.docs.page import DOCS, Block, blocks, commands, name, pages
from tests.docs.page_run import TERMINAL, PageRun
from tests.repository import REPOSITORY

_ON_S3 = [REPOSITORY / "README.md", DOCS / "howto/s3.md"]
"""Pages whose buckets are reached by the environment alone, so that the whole cluster has to be started with it."""


def _is_run(block: Block) -> bool:
    if block.not_run is not None or block.title is not None:
        return False
    return block.language == "python" or (block.language == "console" and any(commands(block)))


_HERE = [page for page in pages("tutorial", "howto") if page not in _ON_S3 and any(map(_is_run, blocks(page)))]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory of its own, and a terminal.  What a page has imported from there is forgotten."""
    monkeypatch.chdir(tmp_path)
    for variable, value in TERMINAL.items():
        monkeypatch.setenv(variable, value)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for module in set(sys.modules) - modules:
        if str(getattr(sys.modules[module], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[module]


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.usefixtures("session", "reader")
@pytest.mark.parametrize("page", _HERE, ids=name)
def test_a_page_does_what_it_says(page: Path) -> None:
    run = PageRun(page)
    run.run()
    assert run.ran > 0


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.parametrize("page", _ON_S3, ids=name)
def test_a_page_about_s3_does_what_it_says_on_a_real_server(page: Path, tmp_path: Path) -> None:
    with S3Server() as server:
        server.create_bucket("raw")
        server.create_bucket("lake")
        for file in [file for file in day_files() if file.format == "parquet"][:5]:
            server.put("raw", f"flights/{file.key}", file.body)
        environment = {**server.environment, "PYTHONPATH": str(REPOSITORY), **TERMINAL}
        ended = subprocess.run(
            [sys.executable, "-m", "tests.docs.page_run", str(page)],
            env={**os.environ, **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
