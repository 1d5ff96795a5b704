"""A pipeline on a branch of a living root, while both read files; then the branch is merged and dropped."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.commands.maintenance import run_as_owner, vacuum
from state.upkeep.retention import RetentionSettings
from tests.real.event_pipeline import FAST, ONE_FETCHER, TOTALS
from tests.real.events import events, parquet, write

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.usefixtures("session")]

JOINED = "SELECT e.user, e.amount, p.country FROM events e JOIN places p ON e.user % 2 = p.id"
LEVELS = "SELECT n, count(*) AS users FROM (SELECT user, count(*) AS n FROM events GROUP BY user) GROUP BY n"
BY_KIND = "SELECT amount % 3 AS kind, count(*) AS n, max(user) AS last FROM events GROUP BY amount % 3"
TOP = "SELECT user, amount FROM events ORDER BY amount DESC, user LIMIT 3"
OLD = {"totals": TOTALS, "joined": JOINED, "levels": LEVELS}
NEW = {**OLD, "kinds": BY_KIND, "top": TOP, "levels": LEVELS.replace("AS users", "AS users, min(user) AS least")}


def pipeline(at: Path, root: str, views: dict[str, str]) -> sw.Pipeline:
    made = sw.Pipeline("events", root, settings=ONE_FETCHER)
    made.source("events", at / "in", format="parquet", discovery=FAST, on_change="replace", materialize=True)
    made.table("places", pa.table({"id": [0, 1], "country": ["AT", "CH"]}))
    for name, query in views.items():
        made.view(name, query, replace=OLD.get(name, query) != query)
    return made


def vacuum_now(root: str) -> None:
    last = RetentionSettings(keep_s=0, keep_epochs=1)
    run_as_owner(root, None, lambda store, place: vacuum(store, place, last))


def test_a_branch_tries_views_on_its_own_and_gives_them_to_its_root(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    root = str(tmp_path / "root")
    for number in range(5):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(number * 10)))
    with pipeline(tmp_path, root, OLD).start() as run:
        run.wait(until="caught_up")
        branch = sw.branch(root, "trial")  # the run notes it
        store = sw.open(root)
        first = store.latest_epoch()
        write(tmp_path / "in", "5.parquet", parquet(events(50)))
        (tmp_path / "in" / "1.parquet").unlink()
        run.wait(until="caught_up")
    for view in OLD:
        assert store.diff(view, branch, epoch=first).is_equal
    assert not store.diff("totals", branch).is_equal
    vacuum_now(root)

    trial = pipeline(tmp_path, branch.root, NEW)
    with trial.start() as run:
        run.wait(until="caught_up")
        write(tmp_path / "in", "6.parquet", parquet(events(60)))
        run.wait(until="caught_up")
        assert run.forget("2.parquet") == 1
    assert sw.verify(branch, pipeline=trial).all_equal
    vacuum_now(branch.root)
    assert sw.verify(branch, pipeline=trial).all_equal
    assert sw.verify(store, pipeline=pipeline(tmp_path, root, OLD)).all_equal
    with pytest.raises(sw.errors.UsageError, match="root and branch have not read the same files of events"):
        sw.merge(root, "trial", views=["kinds"])

    with pipeline(tmp_path, root, OLD).start() as run:
        run.wait(until="caught_up")
        assert run.forget("2.parquet") == 1
    assert all(store.diff(view, branch).is_equal for view in ("totals", "joined"))
    # `joined` reads a table that stands below each root; it is the same in both, and is not taken.
    merged = sw.merge(root, "trial")
    assert merged.views == ("kinds", "levels", "top")
    sw.drop_branch(root, "trial")
    vacuum_now(root)
    after = pipeline(tmp_path, root, NEW)
    assert sw.verify(store, pipeline=after).all_equal
    before = store.views.table().to_pylist()
    write(tmp_path / "in", "7.parquet", parquet(events(70)))
    (tmp_path / "in" / "3.parquet").unlink()
    report = after.run(until="caught_up")
    assert report.files == 1
    assert [each["path"] for each in store.views.table().to_pylist()] == [each["path"] for each in before], (
        "none is rebuilt"
    )
    assert sw.verify(store, pipeline=after).all_equal
