from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import obstore
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.errors import AccessDeniedError, BucketNotFoundError, FencedError, OwnedError, RunFailedError
from state.location import Location
from state.objects.object_client import object_client
from state.ownership.owner import Owner, Ownership, _to_json, new_run_id, read_owner
from state.ownership.process_identity import ProcessIdentity
from state.tables.discovery_progress import DiscoveryProgress, QueueProgress
from tests.cases import few
from tests.state.ownership.child_process import child_process
from tests.waiting import eventually

MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)
NEVER_S = 3600.0
LISTED = DiscoveryProgress(MOMENT, found=3, period_s=60.0)
TOLD = DiscoveryProgress(MOMENT, queue=QueueProgress("https://sqs/raw", 2, MOMENT, received=9, redelivered=1))


class WatchingClock(ManualClock):
    """A manual clock that reports when a thread waits on it."""

    def __init__(self, on_sleep: Callable[[float], object] = lambda elapsed_s: None) -> None:
        super().__init__(MOMENT)
        self.on_sleep = on_sleep

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.on_sleep(self.monotonic())


class InterruptedClock(ManualClock):
    """A manual clock that runs an action once, between the read and the write of `owner.json`."""

    before_writing: Callable[[], None] | None = None

    def now(self) -> datetime:
        action, self.before_writing = self.before_writing, None
        if action is not None:
            action()
        return super().now()


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path / "not" / "yet"))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)


def ownership(root: Location, run_id: str, clock: ManualClock | None = None, interval_s: float = NEVER_S) -> Ownership:
    return Ownership(root, clock or WatchingClock(), run_id=run_id, pipeline="flights", interval_s=interval_s)


def write_foreign(root: Location, **changes: object) -> Owner:
    """An owner on another machine, as its last renewal left it."""
    fields: dict[str, object] = {
        "run_id": "other",
        "pipeline": "flights",
        "process": ProcessIdentity("elsewhere", 17),
        "since": MOMENT,
        "renewed_at": MOMENT,
        "phase": "running",
    }
    owner = Owner(**{**fields, **changes})  # type: ignore[arg-type]
    obstore.put(object_client(root), "owner.json", _to_json(owner))
    return owner


def test_a_free_root_is_taken_and_says_who_has_it(root: Location) -> None:
    assert read_owner(root) is None
    mine = ownership(root, "mine")
    mine.acquire()
    owner = read_owner(root)
    assert owner is not None
    assert (owner.run_id, owner.pipeline, owner.process) == ("mine", "flights", ProcessIdentity.current())
    assert owner.pid == os.getpid()
    assert (owner.since, owner.phase, owner.term, owner.is_dead()) == (MOMENT, "starting", 0, False)
    mine.release()
    stopped = read_owner(root)
    assert stopped is not None and (stopped.phase, stopped.released) == ("stopped", True)
    clock = WatchingClock()
    following = ownership(root, "next", clock)
    following.acquire()
    assert clock.monotonic() == 0  # a root that was released is not watched
    following.release()


def test_a_root_whose_owner_shows_life_is_refused_with_its_name(root: Location) -> None:
    write_foreign(root)

    def renew(elapsed_s: float) -> None:
        if elapsed_s > 5:
            write_foreign(root, renewed_at=datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC))

    clock = WatchingClock(renew)
    with pytest.raises(OwnedError, match=r"pipeline 'flights', pid 17 on elsewhere, since 2026-01-31 12:00:00 UTC"):
        ownership(root, "mine", clock).acquire()
    assert clock.monotonic() < 7
    owner = read_owner(root)
    assert owner is not None and owner.run_id == "other"


def test_a_living_owner_whose_clock_stands_is_refused(root: Location) -> None:
    living = ownership(root, "living")
    living.acquire()
    clock = WatchingClock(lambda elapsed_s: living.renew())
    with pytest.raises(OwnedError, match="is owned by pipeline 'flights'"):
        ownership(root, "mine", clock).acquire()
    assert clock.monotonic() < 1
    assert not living.lost
    living.release()


@pytest.mark.parametrize(("age_s", "waits"), [(1, False), (9, False), (11, True), (0, True), (-1, True)])
def test_an_owner_that_lives_on_this_machine_and_has_just_renewed_is_refused_at_once(
    root: Location, age_s: int, waits: bool
) -> None:
    clock = WatchingClock()
    process = ProcessIdentity.current()
    write_foreign(root, process=process, renewed_at=clock.now() - timedelta(seconds=age_s))
    mine = ownership(root, "mine", clock, interval_s=5)
    if waits:
        mine.acquire()
        assert clock.monotonic() >= 20
        mine.release()
    else:
        with pytest.raises(OwnedError, match=f"pid {process.pid} on"):
            mine.acquire()
        assert clock.monotonic() == 0


def test_a_silent_owner_is_replaced_after_twenty_seconds_of_our_own_clock(root: Location) -> None:
    write_foreign(root)
    clock = WatchingClock()
    mine = ownership(root, "mine", clock)
    mine.acquire()
    assert 20 <= clock.monotonic() < 21
    owner = read_owner(root)
    assert owner is not None and owner.run_id == "mine"
    mine.release()


def ended_process() -> ProcessIdentity:
    """A process of this machine that has ended."""
    with child_process() as process:
        return process


@pytest.mark.parametrize("takeover", [True, False])
def test_a_dead_process_on_this_machine_or_an_explicit_take_over_skips_the_wait(root: Location, takeover: bool) -> None:
    process = ProcessIdentity("elsewhere", 17) if takeover else ended_process()
    assert write_foreign(root, process=process).is_dead() is not takeover
    clock = WatchingClock()
    mine = ownership(root, "mine", clock)
    mine.acquire(takeover=takeover)
    assert clock.monotonic() == 0
    mine.release()


TORN = {
    "empty": b"",
    "half": b'{"run_id": "other", "pipeline": "fli',
    "zeroes": bytes(512),
    "no object": b"[]",
    "no process": b'{"run_id": "other"}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("content", few(TORN.values(), TORN["empty"], TORN["deep"]), ids=TORN)
@pytest.mark.parametrize("takeover", [True, False])
def test_a_torn_owner_json_is_that_of_a_silent_owner(root: Location, content: bytes, takeover: bool) -> None:
    obstore.put(object_client(root), "owner.json", content)
    assert read_owner(root) is None
    clock = WatchingClock()
    mine = ownership(root, "mine", clock)
    mine.acquire(takeover=takeover)
    assert clock.monotonic() == 0 if takeover else 20 <= clock.monotonic() < 21
    owner = read_owner(root)
    assert owner is not None and (owner.run_id, mine.replaced) == ("mine", frozenset())
    mine.release()


def test_a_torn_owner_json_that_comes_alive_again_is_refused(root: Location) -> None:
    obstore.put(object_client(root), "owner.json", b"")
    clock = WatchingClock(lambda elapsed_s: None if elapsed_s < 5 else write_foreign(root) and None)
    with pytest.raises(OwnedError, match="pid 17 on elsewhere"):
        ownership(root, "mine", clock).acquire()


def test_a_run_goes_on_renewing_when_its_owner_json_is_torn(root: Location) -> None:
    mine = ownership(root, "mine", interval_s=0.02)
    mine.acquire()
    obstore.put(object_client(root), "owner.json", b"")
    eventually(lambda: read_owner(root) is not None, what="the torn file was not written again")
    assert not mine.lost
    mine.check()
    mine.release()


def test_an_error_that_ends_the_renewals_is_raised_to_the_run(root: Location) -> None:
    def fails() -> dict[str, object]:
        raise ZeroDivisionError("no rows yet")

    others = set(threading.enumerate())
    mine = ownership(root, "mine", interval_s=0.02)
    mine.acquire()
    mine.check()
    mine.notify(fails)
    eventually(lambda: not any(each.name == "owner" for each in threading.enumerate() if each not in others))
    with pytest.raises(RunFailedError, match=r"not renewed any more \(ZeroDivisionError: no rows yet"):
        mine.check()
    mine.release("failed")
    owner = read_owner(root)
    assert owner is not None and (owner.phase, owner.released) == ("failed", True)


def test_progress_of_sources_is_kept_from_run_to_run_without_messages_in_flight(root: Location) -> None:
    first = ownership(root, "first")
    first.acquire()
    first.update(sources={"a": LISTED, "b": TOLD})
    first.update(sources={"a": replace(LISTED, found=4)})
    first.renew()
    owner = read_owner(root)
    assert owner is not None and owner.sources == {"a": replace(LISTED, found=4), "b": TOLD}
    write_foreign(root, run_id="killed", sources=owner.sources, process=ended_process())
    second = ownership(root, "second")
    second.acquire()
    kept = {"a": replace(LISTED, found=4), "b": TOLD.at_rest()}
    owner = read_owner(root)
    assert owner is not None and (owner.run_id, owner.sources) == ("second", kept)
    assert TOLD.at_rest().queue == QueueProgress("https://sqs/raw", 0, None, received=9, redelivered=1)
    second.update(sources={"b": TOLD})
    second.release()
    owner = read_owner(root)
    assert owner is not None and owner.sources == kept


def test_owner_json_of_another_version_is_read(root: Location) -> None:
    owner = write_foreign(root, sources={"b": TOLD})
    recorded = json.loads(_to_json(owner))
    recorded["sources"]["b"]["queue"]["later"] = recorded["sources"]["b"]["later"] = recorded["later"] = 1
    obstore.put(object_client(root), "owner.json", json.dumps(recorded).encode())
    assert read_owner(root) == owner
    del recorded["sources"]
    obstore.put(object_client(root), "owner.json", json.dumps({**recorded, "last_listing": None}).encode())
    assert read_owner(root) == replace(owner, sources={})


def test_renewals_write_what_changed_and_a_new_phase_at_once(root: Location) -> None:
    mine = ownership(root, "mine")
    mine.acquire()
    mine.update(sources={"flights": LISTED}, last_error="bucket is slow")
    mine.renew()
    owner = read_owner(root)
    assert owner is not None
    assert (owner.sources, owner.last_error, owner.phase) == ({"flights": LISTED}, "bucket is slow", "starting")
    mine.update(phase="running", term=4)
    arrived = threading.Event()
    for _ in range(500):
        owner = read_owner(root)
        if owner is not None and (owner.phase, owner.term) == ("running", 4):
            break
        arrived.wait(0.01)
    else:
        raise AssertionError(f"the new phase was not written: {owner}")
    mine.release("failed")
    owner = read_owner(root)
    assert owner is not None and owner.phase == "failed"


def test_every_renewal_writes_how_far_the_run_is_at_that_moment(root: Location) -> None:
    run, looks = ownership(root, "one"), iter(range(3))
    run.acquire()
    written = read_owner(root)
    assert written is not None and written.status is None
    run.notify(lambda: {"look": next(looks)})
    for look in range(2):
        run.renew()
        written = read_owner(root)
        assert written is not None and written.status == {"look": look}
    run.release()
    written = read_owner(root)
    assert written is not None and written.released and written.status == {"look": 2}


def test_the_thread_renews_on_its_own(root: Location) -> None:
    clock = WatchingClock()
    mine = ownership(root, "mine", clock, interval_s=0.02)
    mine.acquire()
    clock.advance(60)
    pause = threading.Event()
    for _ in range(500):
        owner = read_owner(root)
        if owner is not None and owner.renewed_at > MOMENT:
            break
        pause.wait(0.01)
    else:
        raise AssertionError(f"nothing was renewed: {owner}")
    mine.release()


def test_a_run_that_was_replaced_notices_and_writes_no_more(root: Location) -> None:
    mine = ownership(root, "mine")
    mine.acquire()
    other = ownership(root, "other")
    other.acquire(takeover=True)
    before = mine.lost
    mine.check()
    mine.renew()
    assert (before, mine.lost) == (False, True)
    with pytest.raises(FencedError, match="taken over by another process"):
        mine.check()
    mine.release()
    owner = read_owner(root)
    assert owner is not None and (owner.run_id, owner.phase) == ("other", "starting")
    other.release()


@pytest.mark.parametrize("takeover", [True, False])
@pytest.mark.parametrize("before", few(["nothing", "released", "dead", "torn"], "nothing", "dead"))
def test_of_two_that_come_at_once_exactly_one_becomes_the_owner(root: Location, before: str, takeover: bool) -> None:
    if before == "torn":
        obstore.put(object_client(root), "owner.json", b"")
    elif before != "nothing":
        write_foreign(root, process=ended_process(), released=before == "released")
    fast, clock = ownership(root, "fast"), InterruptedClock()
    slow = ownership(root, "slow", clock)
    clock.before_writing = lambda: fast.acquire(takeover=takeover)
    with pytest.raises(OwnedError, match="is owned by pipeline 'flights'"):
        slow.acquire(takeover=takeover)
    owner = read_owner(root)
    assert owner is not None and owner.run_id == "fast"
    fast.renew()
    fast.check()
    fast.release()


@pytest.mark.parametrize("renewals", [1, 5])
def test_an_explicit_take_over_is_not_refused_because_the_owner_renews(root: Location, renewals: int) -> None:
    living, clock = ownership(root, "living"), InterruptedClock()
    living.acquire()
    taker, left = ownership(root, "taker", clock), iter(range(renewals))

    def renew() -> None:
        living.renew()
        if next(left, None) is not None:
            clock.before_writing = renew

    next(left)
    clock.before_writing = renew
    taker.acquire(takeover=True)
    living.renew()
    owner = read_owner(root)
    assert owner is not None and owner.run_id == "taker"
    assert (living.lost, taker.lost, taker.replaced) == (True, False, frozenset({"living"}))
    living.release()
    taker.release()


def test_a_renewal_never_overwrites_a_run_that_came_in_between(root: Location) -> None:
    fast, clock = ownership(root, "fast"), InterruptedClock()
    slow = ownership(root, "slow", clock)
    slow.acquire()
    clock.before_writing = lambda: fast.acquire(takeover=True)
    slow.renew()
    owner = read_owner(root)
    assert owner is not None and owner.run_id == "fast"
    assert slow.lost
    slow.release()
    fast.release()


def test_runs_of_one_moment_have_different_ids() -> None:
    clock = ManualClock(MOMENT)
    assert new_run_id(clock) != new_run_id(clock)
    assert f"-{ProcessIdentity.current().namespace_digest}-{os.getpid()}-" in new_run_id(clock)


def test_a_bucket_that_cannot_be_written_is_told_without_secrets(s3: S3Server, bucket: str) -> None:
    options = {**s3.storage_options, "secret_access_key": "planted-secret-value"}
    with pytest.raises(AccessDeniedError) as denied:
        ownership(Location(f"s3://{bucket}/root", options), "mine").acquire()
    assert "planted-secret-value" not in str(denied.value)
    with pytest.raises(BucketNotFoundError, match="no-such-bucket"):
        ownership(Location("s3://no-such-bucket/root", s3.storage_options), "mine").acquire()


def test_an_answer_that_was_lost_takes_the_root_from_nobody(s3: S3Server, bucket: str) -> None:
    with closing(s3.fault_proxy(random.Random(1))) as proxy:
        root = Location(f"s3://{bucket}/root", proxy.storage_options)
        owned = ownership(root, "ours")
        proxy.on("PUT", "root/owner.json", times=1).refuse(applied=True)
        owned.acquire()
        proxy.on("PUT", "root/owner.json", times=1).refuse(applied=True)
        owned.renew()
        assert not owned.lost
        assert len([request for request in proxy.requests if request.fault]) == 2
        owned.release()
