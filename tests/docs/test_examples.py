"""The examples run, as programs and as notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.repository import REPOSITORY

_EXAMPLES = REPOSITORY / "examples"
_JOB = "flights_job.py"
"""Runs until it is stopped: `tests/cluster/test_job.py` submits it to a cluster."""
_PROGRAMS = sorted(path for path in _EXAMPLES.glob("*.py") if path.name != _JOB)
_NOTEBOOKS = sorted(_EXAMPLES.glob("*.ipynb"))


def _file(path: Path) -> str:
    return path.name


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.parametrize("program", _PROGRAMS, ids=_file)
def test_a_program_runs_to_its_end(program: Path) -> None:
    # Not below pytest's directory: the path of a socket has at most 107 bytes, and Ray puts its own behind this one.
    with tempfile.TemporaryDirectory(prefix="sw-") as directory:
        ended = subprocess.run(
            [sys.executable, str(program)],
            env={**os.environ, "TMPDIR": directory, "PYTHONPATH": str(REPOSITORY)},
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=240,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.strip(), "it shows something"


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.parametrize("notebook", _NOTEBOOKS, ids=_file)
def test_a_notebook_runs_to_its_end(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(cells, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    results = [output for cell in cells.cells for output in cell.get("outputs", ()) if output.output_type != "stream"]
    assert results, "it shows something"


@pytest.mark.parametrize("notebook", _NOTEBOOKS, ids=_file)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    cells = nbformat.read(notebook, as_version=4).cells
    nbformat.validate(nbformat.read(notebook, as_version=4))
    for cell in cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
        if cell.cell_type == "code":
            compile(cell.source, notebook.name, "exec")
