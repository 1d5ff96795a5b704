"""Documents that another program wrote: for every content, their readers answer or raise documented errors."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from slackwater.plugins.alerts.alert_states import AlertStates
from slackwater.plugins.publish.parquet_files import _Manifest
from state.capabilities.store_record import StoreRecord
from state.clock import ManualClock
from state.errors import ProtocolError
from state.json_document import json_of, moment_of
from state.location import Location
from state.ownership import owner
from state.ownership.command_inbox import CommandInbox
from state.places.marker import Marker
from state.tables.keys import decode_key
from state.upkeep.pin import pinned_epochs

_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_NUMBERS = ("1e999", "-1e999", "NaN", "Infinity", "-Infinity", "9" * 400, "9" * 5_000)
_BROKEN = (b"", b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 50_000, b"null", b"[]", b"7", b'"text"', b"{}")


@pytest.mark.parametrize("number", _NUMBERS)
def test_numbers_that_no_program_needs_are_refused(number: str) -> None:
    for text in (number, f"[{number}]", f'{{"a": {{"b": {number}}}}}'):
        with pytest.raises(ValueError):
            json_of(text)
    assert json_of('{"a": [1.5e3, -7, 18446744073709551615, true, null]}') == {"a": [1500.0, -7, 2**64 - 1, True, None]}


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe", b"", b"{"])
def test_what_is_not_json_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):
        json_of(content)


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00", "now", 7, None]
)
def test_a_time_without_a_zone_or_outside_of_the_calendar_is_refused(text: Any) -> None:
    with pytest.raises(ValueError):
        moment_of(text)
    assert moment_of("2026-01-02T00:00:00+00:00") == _NOW


_NAME = "1767312000000-0123456789abcdef"


_ANSWERS = [*_BROKEN, *(f'{{"done": true, "text": "", "values": {{"a": {number}}}}}'.encode() for number in _NUMBERS)]


@pytest.mark.parametrize("content", _ANSWERS, ids=range(len(_ANSWERS)))
def test_an_answer_that_is_not_valid_is_a_protocol_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / f"{_NAME}.answer.json").write_bytes(content)
    with pytest.raises(ProtocolError, match="is not a valid answer"):
        CommandInbox(Location(str(tmp_path)), ManualClock(_NOW)).answer_to(_NAME)


_PINS = [
    *_BROKEN,
    *(f'{{"epoch": {number}, "expires_at": "2026-01-03T00:00:00+00:00"}}'.encode() for number in _NUMBERS),
    b'{"epoch": 7, "expires_at": "2026-01-03T00:00:00"}',
    b'{"epoch": 7, "expires_at": "0001-01-01T00:00:00+14:00"}',
    b'{"epoch": 7, "expires_at": 7}',
]


@pytest.mark.parametrize("content", _PINS, ids=range(len(_PINS)))
def test_a_pin_that_is_not_valid_pins_no_epoch(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pins").mkdir()
    file = tmp_path / "pins" / "host-1-1.json"
    file.write_bytes(content)
    assert pinned_epochs(Location(str(tmp_path)), ManualClock(_NOW)) == frozenset()
    file.write_bytes(b'{"epoch": 7, "expires_at": "2026-01-03T00:00:00+00:00"}')
    assert pinned_epochs(Location(str(tmp_path)), ManualClock(_NOW)) == {7}


_READERS: dict[str, Callable[[bytes], object]] = {
    "marker": Marker.of_json,
    "record": StoreRecord.of_json,
    "manifest": _Manifest.of_json,
}


@pytest.mark.parametrize("name", _READERS)
@pytest.mark.parametrize("content", _BROKEN, ids=range(len(_BROKEN)))
def test_a_torn_document_is_none(name: str, content: bytes) -> None:
    assert _READERS[name](content) is None


@pytest.mark.parametrize("content", _BROKEN[:-1], ids=range(len(_BROKEN) - 1))
def test_a_torn_file_of_alerts_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):
        AlertStates.of_json(content)


def test_times_and_values_of_alerts_are_ones_that_can_be_compared() -> None:
    state = {"alert": "a", "subject": "s", "since": "2026-01-02T00:00:00+00:00", "value": 1.0}
    assert AlertStates.of_json(json.dumps({"active": [state]}).encode()).active[0].since == _NOW
    for changed in ({"since": "2026-01-02T00:00:00"}, {"value": float("inf")}):
        with pytest.raises(ValueError):
            AlertStates.of_json(json.dumps({"active": [{**state, **changed}]}).encode())


_OWNERS = [
    *_BROKEN,
    *(f'{{"renewal": {number}}}'.encode() for number in _NUMBERS),
]


@pytest.mark.parametrize("content", _OWNERS, ids=range(len(_OWNERS)))
def test_an_owner_that_is_not_valid_is_read_as_torn(content: bytes) -> None:
    assert owner._from_json(content) is None


@pytest.mark.parametrize(
    "key",
    [
        b"\x04\xff\xfe\x00",
        b"\x06" + struct.pack(">Q", 0),
        b"\x06" + struct.pack(">Q", 2**64 - 1),
        b"\x09",
        b"\x03\x00",
        b"\x04abc",
    ],
)
def test_a_key_that_nobody_encoded_is_a_protocol_error(key: bytes) -> None:
    with pytest.raises(ProtocolError, match="is not a valid key"):
        decode_key(key)
