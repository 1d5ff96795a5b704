from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import obstore
import pytest
from obstore.store import ObjectStore

from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.errors import AccessDeniedError, EpochNotFoundError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.objects.object_client import object_client
from state.objects.stored_object import StoredObject, read_object
from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochSeconds
from state.upkeep.pin import LIFETIME_S, Pin, PinFile, pinned_epochs


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path / "root"))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)


def test_a_pin_counts_while_its_context_lasts(root: Location) -> None:
    clock = ManualClock()
    assert pinned_epochs(root, clock) == frozenset()
    with Pin(root, clock, 5), Pin(root, clock, 7), Pin(root, clock, 7):
        assert pinned_epochs(root, clock) == {5, 7}
    assert pinned_epochs(root, clock) == frozenset()


def test_a_pin_of_a_dead_reader_ends_by_itself(root: Location) -> None:
    clock = ManualClock()
    dead = Pin(root, clock, 5)
    dead.__enter__()
    clock.advance(LIFETIME_S - 1)
    assert pinned_epochs(root, clock) == {5}
    with Pin(root, clock, 6) as living:
        clock.advance(LIFETIME_S - 1)
        living.renew()
        clock.advance(2)
        assert pinned_epochs(root, clock) == {6}
        clock.advance(-LIFETIME_S)
        assert pinned_epochs(root, clock) == {6}  # the dead one was removed
    dead.__exit__(None, None, None)


def test_a_reader_that_is_killed_leaves_a_pin_and_the_next_of_its_name_another(tmp_path: Path) -> None:
    root, clock = Location(str(tmp_path)), ManualClock()
    program = (
        "import os, sys; from state.clock import ManualClock; from state.location import Location;"
        "from state.upkeep.pin import Pin; os.getpid = lambda: 1;"
        "Pin(Location(sys.argv[1]), ManualClock(), 5).__enter__(); os._exit(9)"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], env={**os.environ, "PYTHONPATH": "."})
        assert done.returncode == 9
    assert len(list((tmp_path / "pins").iterdir())) == 2
    assert pinned_epochs(root, clock) == {5}


@pytest.mark.parametrize("content", [b"", bytes(8), b'{"epoch": "5", "expi', b"[]", b'{"epoch": "5"}'], ids=repr)
def test_a_torn_pin_holds_nothing_and_goes_when_no_reader_has_renewed_it(root: Location, content: bytes) -> None:
    clock = ManualClock(datetime.now(UTC))
    obstore.put(object_client(root), "pins/torn-1-1.json", content)

    def names() -> list[str]:
        return [each["path"] for batch in obstore.list(object_client(root), "pins/") for each in batch]

    with Pin(root, clock, 6):
        assert pinned_epochs(root, clock) == {6}
    assert names() == ["pins/torn-1-1.json"]
    clock.advance(LIFETIME_S + 60)
    assert pinned_epochs(root, clock) == frozenset()
    assert names() == []


def test_an_object_of_others_between_the_pins_stays(root: Location) -> None:
    client, clock = object_client(root), ManualClock(datetime.now(UTC))
    for name in ("pins/notes.json", "pins/host-1-1.txt", "pins/below/host-1-1.json"):
        obstore.put(client, name, b"of a user")
    clock.advance(LIFETIME_S + 60)
    assert pinned_epochs(root, clock) == frozenset()
    assert len([each for batch in obstore.list(client, "pins/") for each in batch]) == 3


def test_a_pin_that_its_reader_renews_meanwhile_stays(root: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(datetime.now(UTC))
    pin = PinFile(root, clock, 5)
    pin.create()

    def renewed_after(client: ObjectStore, place: Location, name: str) -> StoredObject:
        found = read_object(client, place, name)
        pin.renew()
        return found

    clock.advance(LIFETIME_S + 60)
    with monkeypatch.context() as patched:
        patched.setattr("state.upkeep.pin.read_object", renewed_after)
        pinned_epochs(root, clock)
    assert pinned_epochs(root, clock) == {5}


def test_a_store_pins_only_what_is_retained(tmp_path: Path) -> None:
    root, clock = Location(str(tmp_path)), ManualClock()
    store = LanceStateStore.create(root, clock)
    store.take_over()
    store.commit(epoch=3, delta=Delta(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    reader = LanceStateStore.open(root, clock, read_only=True)
    with reader.pin(3):
        assert pinned_epochs(root, clock) == {3}
    with pytest.raises(EpochNotFoundError, match="epoch 4 is not retained"), reader.pin(4):
        pass
    assert pinned_epochs(root, clock) == frozenset()


def test_a_reader_without_write_access_is_told_so(s3: S3Server, bucket: str) -> None:
    root = Location(f"s3://{bucket}/root", {**s3.storage_options, "secret_access_key": "wrong"})
    with pytest.raises(AccessDeniedError), Pin(root, ManualClock(), 5):
        pass
