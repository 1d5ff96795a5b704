"""A dry run tells what a run would publish first, and which table it would not touch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.extensions.table_target import PublicationPlan
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.start_check import plan_publications
from state.clock import SystemClock
from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView
from tests.slackwater.plugins.publish.published import target_in


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


@pytest.mark.more_after(1)
@pytest.mark.parametrize("name", ["delta", "parquet"])
def test_a_table_begins_goes_on_or_waits(tmp_path: Path, name: str) -> None:
    root, target = Location(str(tmp_path / "root")), target_in(tmp_path, name)
    publication = DeclaredPublication("v", target)

    def plan() -> PublicationPlan:
        [found] = plan_publications(root, [publication], SystemClock())
        return found

    assert plan() == PublicationPlan("v", str(target), None, "all rows of the view")
    assert not (tmp_path / "v").exists(), "nothing is written"
    view = GrowingView(root)
    first = view.create(numbers(1, 2))
    assert plan().beginning == "all rows of the view"
    sw.publish(view.store, "v", target)
    assert plan() == PublicationPlan("v", str(target), first, "nothing before new files")
    view.table.append(numbers(3))
    view.commit()
    assert plan() == PublicationPlan("v", str(target), first, f"the epochs after {first}")
    view.create(pa.table({"other": pa.array(["x"])}))
    assert "other" in (plan().refused or ""), "a run would be refused"


def test_the_table_of_another_root_is_refused(tmp_path: Path) -> None:
    target = target_in(tmp_path, "delta")
    other = GrowingView(Location(str(tmp_path / "other")))
    other.create(numbers(1))
    sw.publish(other.store, "v", target)
    [found] = plan_publications(Location(str(tmp_path / "root")), [DeclaredPublication("v", target)], SystemClock())
    assert "holds view 'v' of" in (found.refused or "") and found.epoch is None
