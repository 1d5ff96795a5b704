"""Tests of a commit on a faulty store: exactly one or none, and its caller gets the outcome in time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock, SystemClock
from state.errors import CommitRefusedError, CommitUnknownError, StorageUnavailableError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from tests.cases import few

_CLOCK = ManualClock()
_MANIFESTS = "*/_versions/*"
_QUICK = {"read_timeout": "0.5s", "client_retry_timeout": "2"}


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with closing(s3.fault_proxy(random.Random(7))) as proxy:
        yield proxy


def _roots(s3: S3Server, bucket: str, proxy: FaultProxy) -> tuple[Location, Location]:
    """The same root, directly and through the faults."""
    url = f"s3://{bucket}/root"
    return Location(url, s3.storage_options), Location(url, {**proxy.storage_options, **_QUICK})


def _delta(epoch: int) -> Delta:
    builder = DeltaBuilder()
    builder.put("seen", f"file-{epoch:011}".encode(), 1, version=b"12345678")
    return builder.build()


def _commit(store: LanceStateStore, epoch: int) -> None:
    store.commit(epoch=epoch, delta=_delta(epoch), views={}, counts=EpochCounts(files=1), seconds=EpochSeconds())


def _taken_over(root: Location) -> LanceStateStore:
    """The store under a new term; a commit that comes late may come in between, once."""
    for _ in range(2):
        store = LanceStateStore.open(root, _CLOCK)
        try:
            store.take_over()
            return store
        except CommitRefusedError:
            pass
    raise AssertionError("only one commit was under way")


def _committed(root: Location) -> tuple[list[int], list[str]]:
    """The epochs, and the files of their deltas."""
    store = LanceStateStore.open(root, _CLOCK)
    return [record.epoch for record in store.epochs()], sorted(row["key"].decode() for row in store.rows("seen"))


@pytest.mark.more_after(1)
@pytest.mark.parametrize("kind", few(["refuse", "reset", "cut", "freeze", "slow"], "cut", "freeze"))
def test_a_manifest_that_is_written_and_not_confirmed_is_committed_exactly_once(
    s3: S3Server, bucket: str, proxy: FaultProxy, kind: str
) -> None:
    direct, faulty = _roots(s3, bucket, proxy)
    LanceStateStore.create(direct, _CLOCK)
    store = LanceStateStore.open(faulty, _CLOCK)
    store.take_over()
    for epoch in range(1, 6):
        rule = proxy.on("PUT", _MANIFESTS, times=1)
        if kind in ("refuse", "reset", "freeze"):
            getattr(rule, kind)(applied=True)
        elif kind == "slow":
            rule.slow(0.2)
        else:
            rule.cut()
        _commit(store, epoch)
    assert len(proxy.met(kind)) == 5
    proxy.heal()
    assert _committed(direct) == ([1, 2, 3, 4, 5], [f"file-{epoch:011}" for epoch in range(1, 6)])
    _commit(store, 6)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("kind", ["refuse", "reset", "freeze"])
def test_a_manifest_that_did_not_arrive_is_sent_again_or_refused(
    s3: S3Server, bucket: str, proxy: FaultProxy, kind: str
) -> None:
    direct, faulty = _roots(s3, bucket, proxy)
    LanceStateStore.create(direct, _CLOCK)
    store = LanceStateStore.open(faulty, _CLOCK)
    store.take_over()
    _commit(store, 1)
    getattr(proxy.on("PUT", _MANIFESTS, times=1), kind)()
    try:
        _commit(store, 2)
        done = [1, 2]
    except CommitRefusedError:
        done = [1]
    assert _committed(direct)[0] == done
    # What was frozen arrives now, late: it may still be accepted, and then every new handle knows.
    proxy.heal()
    _commit(_taken_over(direct), 3)
    epochs, files = _committed(direct)
    assert epochs in ([*done, 3], [1, 2, 3]) and files == [f"file-{epoch:011}" for epoch in epochs]


@pytest.mark.more
@pytest.mark.parametrize("kind", ["refuse", "reset", "cut"])
def test_commits_through_random_faults_lose_and_repeat_nothing(
    s3: S3Server, bucket: str, proxy: FaultProxy, kind: str
) -> None:
    direct, faulty = _roots(s3, bucket, proxy)
    LanceStateStore.create(direct, _CLOCK)
    getattr(proxy.on("*", probability=0.15), kind)()
    store = None
    done: list[int] = []
    for epoch in range(1, 16):
        try:
            if store is None:
                store = LanceStateStore.open(faulty, _CLOCK)
                store.take_over()
            _commit(store, epoch)
            done.append(epoch)
        except (CommitRefusedError, CommitUnknownError, StorageUnavailableError):
            store = None  # as recovery does: a new handle
    assert len(proxy.met(kind)) > 10 and len(done) >= 5
    proxy.heal()
    epochs, files = _committed(direct)
    # An outcome that was not known may be either, what was reported as done is there.
    assert set(done) <= set(epochs) and len(epochs) == len(set(epochs))
    assert files == [f"file-{epoch:011}" for epoch in epochs]


@pytest.mark.more
@pytest.mark.parametrize("applied", [False, True], ids=["lost", "applied"])
def test_a_store_that_freezes_in_a_commit_ends_as_unknown_in_bounded_time(
    s3: S3Server, bucket: str, proxy: FaultProxy, applied: bool
) -> None:
    direct, faulty = _roots(s3, bucket, proxy)
    LanceStateStore.create(direct, _CLOCK)
    store = LanceStateStore.open(faulty, _CLOCK)
    store.take_over()
    with proxy.recording() as commit:
        _commit(store, 1)
    proxy.on("PUT", _MANIFESTS, times=1).freeze(applied=applied)
    # Nor does the store answer to the question whether the commit happened, which Lance asks first, and then we.
    proxy.on("HEAD").freeze()
    proxy.on("GET", _MANIFESTS).freeze()
    proxy.on("LIST", skip=sum(request.is_list for request in commit)).freeze()
    clock = SystemClock()
    start_s = clock.monotonic()
    with pytest.raises(CommitUnknownError, match="the outcome of the commit of epoch 2 is not known"):
        _commit(store, 2)
    assert clock.monotonic() - start_s < 60
    # A handle that does not know is never used again, and the next one finds the truth: here, what came late.
    with pytest.raises(CommitRefusedError):
        _commit(store, 3)
    proxy.heal()
    _commit(_taken_over(direct), 4)
    epochs, files = _committed(direct)
    assert epochs == [1, 2, 4] if applied else epochs in ([1, 4], [1, 2, 4])
    assert files == [f"file-{epoch:011}" for epoch in epochs]


@pytest.mark.parametrize("kind", few(["cut", "refuse", "reset", "freeze"], "cut"))
def test_a_store_that_cannot_be_read_is_unavailable_and_not_missing(
    s3: S3Server, bucket: str, proxy: FaultProxy, kind: str
) -> None:
    direct, faulty = _roots(s3, bucket, proxy)
    LanceStateStore.create(direct, _CLOCK)
    getattr(proxy.on("*"), kind)()
    clock = SystemClock()
    for attempt in (LanceStateStore.open, LanceStateStore.create_or_open):
        start_s = clock.monotonic()
        with pytest.raises(StorageUnavailableError, match="cannot be read or written now"):
            attempt(faulty, _CLOCK)
        assert clock.monotonic() - start_s < 40
