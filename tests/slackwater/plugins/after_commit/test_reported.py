"""What was done to files is told: by `why`, in a table, on the screens; and what would be done, by the dry run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import slackwater as sw
from slackwater.cli.commands.dry_run import _after_lines
from slackwater.cli.display.companion_block import RootFilesAfterCommit, after_commit_lines
from slackwater.cli.terminal.output import Output
from slackwater.plugins.after_commit.actions import Delete, Move
from slackwater.plugins.after_commit.after_plan import plan_after
from slackwater.plugins.after_commit.declaration import declared
from slackwater.reading.store import Store
from slackwater.status.run_status import AfterCommitStatus, RunStatus
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import NotFoundError
from state.ownership.owner import Ownership
from tests.slackwater.plugins.after_commit.real_files import RealFiles
from tests.slackwater.plugins.serve.served_sql import served

VIEWS = [ViewDefinition(name, f"SELECT ... AS {name}") for name in ("by_carrier", "late")]


@pytest.fixture
def files(tmp_path: Path) -> RealFiles:
    return RealFiles(tmp_path)


def test_why_tells_what_became_of_a_file(files: RealFiles) -> None:
    archive = files.directory / "archive"
    (archive / "x").mkdir(parents=True)
    (archive / "x" / "b.csv").write_text("another\n")
    written = [files.write(f"x/{name}.csv") for name in "abcd"]
    files.finish(*written)
    files.write("x/c.csv", "a newer one\n")
    (files.raw.path / "x" / "d.csv").unlink()
    files.look(files.work(Move(str(archive))))
    store = Store(files.root, files.clock)

    def last_line(name: str) -> str:
        return store.ledger.why(f"{files.raw}/x/{name}.csv").text.splitlines()[-1]

    at = f"{files.clock.now():%Y-%m-%d %H:%M:%S} UTC"
    assert last_line("a") == f"It was moved to {archive} after the commit, at {at}."
    assert last_line("b").startswith(f"It could not be moved to {archive} after the commit, at {at}: ")
    assert last_line("b").endswith(". A run tries it again.")
    assert "another version of it was there, which stays" in last_line("c")
    assert last_line("d").endswith(f"and was not there any more at {at}.")
    table = store.ledger.handled_files("flights")
    outcomes = dict(zip(table["path"].to_pylist(), table["outcome"].to_pylist(), strict=True))
    assert outcomes == {
        f"{files.raw.url}/x/{name}.csv": outcome
        for name, outcome in {"a": "done", "b": "failed", "c": "changed", "d": "absent"}.items()
    }
    with pytest.raises(NotFoundError, match="there is no source 'orders'"):
        store.ledger.handled_files("orders")


def test_an_earlier_epoch_does_not_know_what_came_later(files: RealFiles) -> None:
    epoch = files.finish(files.write("a.csv"))
    files.look(files.work(Delete(keep_s=3_600)), after_s=4_000)
    store = Store(files.root, files.clock)
    assert "deleted" in store.ledger.why(f"{files.raw}/a.csv").text
    assert "deleted" not in store.snapshot(epoch).why(f"{files.raw}/a.csv").text


def test_sql_clients_see_what_was_done_by_the_commit_of_their_epoch(files: RealFiles) -> None:
    before = files.finish(files.write("a.csv"))
    files.look(files.work(Delete(keep_s=3_600)), after_s=4_000)
    done = files.finish(files.write("b.csv"))
    store = Store(files.root, files.clock)
    assert store.snapshot(done).handled_files("flights") == store.ledger.handled_files()
    with pytest.raises(NotFoundError, match="there is no source 'orders'"):
        store.snapshot(done).handled_files("orders")
    question = "SELECT path, action, outcome, epoch FROM handled_files"
    with served(files.root.url) as endpoint, endpoint.connect() as client:
        assert client.execute(question).fetchall() == [(f"{files.raw.url}/a.csv", "delete", "done", before)]
        client.execute(f"SET slackwater.epoch = '{before}'")
        assert client.execute(question).fetchall() == []


def test_a_root_without_the_record_tells_nothing(files: RealFiles) -> None:
    files.finish(files.write("a.csv"))
    store = Store(files.root, files.clock)
    assert store.ledger.handled_files().num_rows == 0
    assert "after the commit" not in store.ledger.why(f"{files.raw}/a.csv").text


def test_the_dry_run_lists_what_a_run_would_take_now_and_later(files: RealFiles) -> None:
    files.finish(*[files.write(f"{number}.csv") for number in range(7)])
    files.look(files.work(Delete(keep_s=0)))
    files.finish(*[files.write(f"old/{number}.csv") for number in range(7)])
    files.clock.advance(timedelta(hours=2).total_seconds())
    files.finish(files.write("new.csv"))
    files.finish(files.write("bad.csv"), status="quarantined")
    each = declared(files.source, Delete(keep_s=3_600))
    plan = plan_after(each, files.writer.store, files.root, VIEWS, ["totals"], files.clock)
    assert (plan.due.files, plan.due.bytes, plan.later.files) == (7, 35, 1)
    assert list(_after_lines(plan)) == [
        "    after      delete: 7 files, 35 bytes now: old/0.csv, old/1.csv, old/2.csv, old/3.csv, old/4.csv, ...",
        "               1 file, 5 bytes later: they have to be committed for the stated time",
        "               each when the tables of totals have its rows; they are not asked now",
        "    note       a view that is declared later cannot have the rows of files that are deleted: "
        "materialize=True keeps them",
    ]
    assert "old/0.csv" in files.present(), "nothing is done"


def test_why_tells_what_a_file_waits_for(files: RealFiles) -> None:
    newer = files.write("newer.csv", days_ago=-1)
    files.finish(newer)
    epoch = files.finish(files.write("a.csv"))
    work = files.work(Delete(keep_s=0))
    told = files.look(work, by_carrier=None)
    url = f"{files.raw}/a.csv"
    store = Store(files.root, files.clock)
    assert "after the commit" not in store.ledger.why(url).text, "no run reports it"
    ownership = Ownership(files.root, files.clock, run_id="r", pipeline="flights")
    ownership.acquire()
    ownership.notify(lambda: RunStatus("running", epoch, after_commit=(told,)).to_json())
    ownership.update(phase="running")
    said = store.ledger.why(url).text.splitlines()[-1]
    assert said == (
        "It is to be deleted after the commit, and waits: the publication delta:/t of view by_carrier lacks the last "
        "epochs."
    )
    files.look(work, after_s=60, by_carrier=epoch)
    assert "is not deleted yet, at " in store.ledger.why(f"{files.raw}/newer.csv").text
    ownership.release("stopped")


def test_the_dry_run_waits_for_a_view_whose_text_has_changed(files: RealFiles) -> None:
    files.finish(files.write("a.csv"))
    each = declared(files.source, Delete(keep_s=0))
    files.clock.advance(60)
    changed = [VIEWS[0], ViewDefinition("late", "SELECT delay FROM flights")]
    plan = plan_after(each, files.writer.store, files.root, changed, [], files.clock)
    assert (plan.due.files, plan.later.files) == (0, 1)
    assert plan.waits_for == "view late needs the files: it is stored with another definition"
    added = [*VIEWS, ViewDefinition("new", "SELECT delay FROM flights")]
    plan = plan_after(each, files.writer.store, files.root, added, [], files.clock)
    assert plan.waits_for == "view new needs the files: no epoch has it yet"


def test_the_dry_run_of_a_root_without_a_store_has_no_files(files: RealFiles) -> None:
    plan = plan_after(declared(files.source, Move("/archive")), None, files.root, VIEWS, [], files.clock)
    assert (plan.action, plan.due.files, plan.first) == ("move to /archive", 0, ())


def test_the_screens_show_what_files_wait_for_and_what_fails(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = AfterCommitStatus("a", "delete", waits_for="an expectation holds the last epochs back")
    failing = AfterCommitStatus("b", "move to s3://x", handled=3, failed=2, error="s3://x: access\nis denied")
    failure = "source b, move to s3://x: 2 files: s3://x: access is denied; it is tried again"
    assert after_commit_lines([waiting, failing]) == [failure]
    facts = SimpleNamespace(run=RunStatus(after_commit=(waiting, failing)))
    RootFilesAfterCommit(facts).show(Output())  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "source a: files wait: an expectation holds the last epochs back",
        failure,
    ]


def test_a_source_is_followed_by_the_tables_of_all_views_above_it(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    for name in ("s", "t"):
        pipeline.source(name, tmp_path / name, format="csv", after=sw.Delete(keep_s=0))
    pipeline.view("v", "SELECT * FROM s")
    pipeline.view("w", "SELECT * FROM v", publish=sw.ParquetFiles(str(tmp_path / "w")))
    assert pipeline._published_over() == {"s": {"w"}, "t": set()}
