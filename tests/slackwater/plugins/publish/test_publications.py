"""The process that publishes beside a run: it is killed, frozen and left alone, and no table ever has half an epoch."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from deltalake import write_deltalake

import slackwater as sw
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication_loop import PublicationReport
from slackwater.plugins.publish.publications import Publications
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.location import Location
from tests.slackwater.plugins.publish.beside import beside, state
from tests.slackwater.plugins.publish.growing_view import GrowingView, events, groups
from tests.slackwater.plugins.publish.published import is_published, require_equal, target_in, written_by_another
from tests.waiting import eventually

_GROUPS = 20_000
_PARENT = """
import sys, time
from tests.slackwater.plugins.publish.published import target_in
from tests.slackwater.plugins.publish.beside import beside, state
from pathlib import Path
with beside(sys.argv[1], target_in(Path(sys.argv[2]), "delta")) as publications:
    publications.notify(state(int(sys.argv[3])))
    while not publications.statuses[0].commits:
        time.sleep(0.05)
    print(publications._child.pid, flush=True)
    time.sleep(600)
"""


def written_before(table: Path) -> None:
    """A table of another program."""
    write_deltalake(str(table), events(9))


def child_of(publications: Publications) -> int:
    """The process id, once there is a process."""
    eventually(lambda: publications._child is not None)
    assert publications._child is not None
    return publications._child.pid


@pytest.mark.more
def test_several_tables_follow_a_view_and_the_last_epoch_is_in_all_of_them(tmp_path: Path) -> None:
    view, formats = GrowingView(Location(str(tmp_path / "root"))), ("delta", "iceberg", "parquet")
    epochs = [view.create(events(1, 2))]
    targets = [target_in(tmp_path / format, format) for format in formats]
    with beside(view.writer.root.url, *targets) as publications:
        publications.notify(state(*epochs))
        eventually(lambda: all(each.epoch == epochs[0] for each in publications.statuses))
        assert [(each.behind_epochs, each.behind_s, each.rows) for each in publications.statuses] == [(0, 0.0, 2)] * 3
        for number in (3, 4, 5):
            view.table.append(events(number))
            epochs.append(view.commit())
            publications.notify(state(*epochs))
    for format in formats:
        assert require_equal(view.store, tmp_path / format, format) == epochs[-1]
    assert [(each.epoch, each.error, each.behind_epochs) for each in publications.statuses] == [
        (epochs[-1], None, 0)
    ] * 3


@pytest.mark.more
def test_a_failed_publication_stops_no_other_and_tells_its_reason_and_lag(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    epochs = [view.create(events(1))]
    broken, whole = (target_in(tmp_path / name, "delta") for name in ("broken", "whole"))
    with beside(view.writer.root.url, broken, whole) as publications:
        publications.notify(state(*epochs))
        eventually(lambda: all(each.commits for each in publications.statuses))
        written_by_another(tmp_path / "broken", "delta", events(9))
        for number in (2, 3):
            view.table.append(events(number))
            epochs.append(view.commit())
            publications.notify(state(*epochs))
        eventually(lambda: publications.statuses[1].epoch == epochs[-1])
        eventually(lambda: publications.statuses[0].behind_epochs == 2)
        failed = publications.statuses[0]
        assert failed.epoch == epochs[0] and failed.behind_s > 0
        assert failed.error is not None and "was written by another program" in failed.error
        assert (failed.state, failed.is_incomplete) == ("failed", True)
        assert publications.statuses[1].state == "current"
    assert require_equal(view.store, tmp_path / "whole", "delta") == epochs[-1]


@pytest.mark.more
def test_a_table_that_is_added_follows_at_once_and_after_a_death(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    epochs = [view.create(events(1, 2))]
    first, added = (target_in(tmp_path / name, "parquet", interval_s=0) for name in ("first", "added"))
    with beside(view.writer.root.url, first) as publications:
        publications.notify(state(*epochs))
        eventually(lambda: publications.statuses[0].commits == 1)
        before = child_of(publications)
        publications.add([DeclaredPublication("v", added)])
        assert publications.statuses[1].epoch is None
        eventually(lambda: publications.statuses[1].epoch == epochs[0])
        assert child_of(publications) == before, "the process goes on"
        os.kill(before, signal.SIGKILL)
        view.table.append(events(3))
        epochs.append(view.commit())
        publications.notify(state(*epochs))
        eventually(lambda: {each.epoch for each in publications.statuses} == {epochs[-1]})
    for name in ("first", "added"):
        assert require_equal(view.store, tmp_path / name, "parquet") == epochs[-1]


@pytest.mark.more
def test_a_process_that_dies_starts_again(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    epochs = [view.create(events(1))]
    with beside(view.writer.root.url, target_in(tmp_path, "parquet", interval_s=0)) as publications:
        publications.notify(state(*epochs))
        eventually(lambda: publications.statuses[0].commits == 1)
        os.kill(child_of(publications), signal.SIGKILL)
        eventually(lambda: publications.statuses[0].error == "the process that publishes was killed by signal 9")
        view.table.append(events(2))
        epochs.append(view.commit())
        publications.notify(state(*epochs))
        eventually(lambda: publications.statuses[0].epoch == epochs[-1])
        assert publications.statuses[0].error is None
    assert require_equal(view.store, tmp_path, "parquet") == epochs[-1]


def test_a_report_that_a_death_has_cut_off_ends_the_life_of_the_process_only(tmp_path: Path) -> None:
    with beside(str(tmp_path / "root"), target_in(tmp_path, "parquet")) as publications:
        ended, whole = threading.Event(), json.dumps(PublicationReport(0, epoch=7, commits=1).to_json()).encode()
        publications._read(io.BytesIO(whole + b"\n" + whole[:20]), ended)
        assert (publications.statuses[0].epoch, ended.is_set()) == (7, True)


@pytest.mark.more
def test_a_frozen_process_keeps_no_run_from_its_end(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    first = view.create(events(1))
    with beside(view.writer.root.url, target_in(tmp_path, "delta")) as publications:
        publications.notify(state(first))
        eventually(lambda: publications.statuses[0].commits == 1)
        os.kill(child_of(publications), signal.SIGSTOP)
        view.table.append(events(2))
        publications.notify(state(first, view.commit()))
        publications.begin_end()
        publications.join(0.5)
    assert require_equal(view.store, tmp_path, "delta") == first
    [status] = publications.statuses
    assert (status.behind_epochs, status.is_incomplete) == (1, True)
    assert status.error == "the last epoch was not published within 0 s of the end of the run"


@pytest.mark.more
def test_a_failure_that_may_pass_is_tried_again_at_the_end_of_the_run(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    first = view.create(events(1))
    (tmp_path / "v").write_text("in the way")
    with beside(view.writer.root.url, target_in(tmp_path, "parquet")) as publications:
        publications.notify(state(first))
        eventually(lambda: publications.statuses[0].state == "retrying")
        publications.begin_end()
        (tmp_path / "v").unlink()
    assert require_equal(view.store, tmp_path, "parquet") == first
    assert [(each.state, each.is_incomplete) for each in publications.statuses] == [("current", False)]


@pytest.mark.more
def test_a_failure_that_cannot_pass_does_not_hold_up_the_end_of_the_run(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    first = view.create(events(1))
    written_before(tmp_path / "v")
    with beside(view.writer.root.url, target_in(tmp_path, "delta")) as publications:
        publications.notify(state(first))
        publications.begin_end()
        publications.join(60)
        [status] = publications.statuses
        assert (status.state, status.failures) == ("failed", 1)


@pytest.mark.more
def test_the_process_ends_with_its_run(tmp_path: Path) -> None:
    view = GrowingView(Location(str(tmp_path / "root")))
    first = view.create(events(1))
    command = [sys.executable, "-c", _PARENT, view.writer.root.url, str(tmp_path), str(first)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    eventually(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text())


@pytest.mark.more
@pytest.mark.parametrize(
    ("format", "seed", "kills"),
    [
        ("parquet", 1, 3),
        pytest.param("delta", 2, 10, marks=pytest.mark.more),
        pytest.param("iceberg", 3, 10, marks=pytest.mark.more),
        pytest.param("parquet", 4, 10, marks=pytest.mark.more),
    ],
)
def test_a_killed_process_leaves_the_table_at_the_epoch_that_it_names(
    tmp_path: Path, format: str, seed: int, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.plugins.publish.publications.LONGEST_PAUSE_S", 0.01)
    random = Random(seed)
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    epochs = [view.create(groups(dict.fromkeys(range(_GROUPS), 1)))]
    target = target_in(tmp_path, format, interval_s=0)
    with beside(view.writer.root.url, target) as publications:
        for _ in range(kills):
            publications.notify(state(*epochs[-32:]))
            child = child_of(publications)
            eventually(lambda: publications.statuses[0].epoch is not None)  # the imports are over
            for _ in range(random.randint(1, 3)):
                changed = {random.randrange(_GROUPS + 50): random.randint(2, 9) for _ in range(50)}
                view.table.upsert(groups(changed))
                epochs.append(view.commit())
                publications.notify(state(*epochs[-32:]))
            SystemClock().sleep(random.uniform(0, 0.4))
            os.kill(child, signal.SIGKILL)
            eventually(lambda: publications._child is None or publications._child.pid != child)  # noqa: B023
            if is_published(tmp_path, format):
                require_equal(view.store, tmp_path, format)
    assert require_equal(view.store, tmp_path, format) == epochs[-1]


@pytest.mark.more
def test_tables_in_a_bucket_follow_with_the_access_that_they_are_given(
    tmp_path: Path, s3: S3Server, bucket: str
) -> None:
    view = GrowingView(Location(str(tmp_path / "root")), "carrier", "day of it")
    epochs = [view.create(groups({1: 1, 2: 2}))]
    options = s3.storage_options
    targets = (
        sw.Delta(f"s3://{bucket}/delta/v", options),
        sw.ParquetFiles(f"s3://{bucket}/parquet/v", options, partition_by="carrier", interval_s=0),
    )
    with beside(view.writer.root.url, *targets) as publications:
        publications.notify(state(*epochs))
        eventually(lambda: all(each.commits for each in publications.statuses))
        view.table.upsert(groups({2: 3, 4: 4}))
        epochs.append(view.commit())
        publications.notify(state(*epochs))
    assert [(each.epoch, each.error) for each in publications.statuses] == [(epochs[-1], None)] * 2
    for target in targets:
        changed = sw.publish(view.store, "v", target)
        assert (changed.since, changed.rows) == (epochs[-1], 0)
