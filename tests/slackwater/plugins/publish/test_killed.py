"""`slackwater publish` is killed at random moments: the table always equals the view at the epoch that it names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView, groups
from tests.slackwater.plugins.publish.published import is_published, require_equal

# Says when the imports are over, so that a moment after it is a moment of the publication.
_PUBLISH = """
import sys
from slackwater.cli.app import main
import slackwater.plugins.publish.{format}_table, slackwater.plugins.publish.publisher, slackwater.reading.store
print("begin", flush=True)
main(["publish", sys.argv[1], "v", "--to", sys.argv[2], "--json"])
"""
_GROUPS = 20_000


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        child.kill()
        child.wait()


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("format", "seed", "kills"),
    [
        ("delta", 1, 3),
        ("iceberg", 2, 3),
        pytest.param("delta", 3, 12, marks=pytest.mark.more),
        pytest.param("iceberg", 4, 12, marks=pytest.mark.more),
    ],
)
def test_a_killed_publication_leaves_the_table_at_the_epoch_that_it_names(
    tmp_path: Path, format: str, seed: int, kills: int, children: list[subprocess.Popen[str]]
) -> None:
    random = Random(seed)
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    view.create(groups(dict.fromkeys(range(_GROUPS), 1)))
    target = f"{format}:{tmp_path / 'v'}"

    def started() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _PUBLISH.format(format=format), view.writer.root.url, target]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        children.append(child)
        assert child.stdout is not None and child.stdout.readline() == "begin\n", child.communicate()[1]
        return child

    named = 0
    for _ in range(kills):
        child = started()
        try:
            child.wait(random.uniform(0, 0.6))
        except subprocess.TimeoutExpired:
            child.kill()
        child.wait()
        if is_published(tmp_path, format):
            named = require_equal(view.store, tmp_path, format)
        view.table.upsert(groups({random.randrange(_GROUPS + 50): random.randint(2, 9) for _ in range(50)}))
        view.commit()
    last = started()
    out, err = last.communicate(timeout=120)
    assert last.returncode == 0, err
    assert f'"epoch": "{view.writer.records[-1].epoch}"' in out
    assert require_equal(view.store, tmp_path, format) == view.writer.records[-1].epoch > named
