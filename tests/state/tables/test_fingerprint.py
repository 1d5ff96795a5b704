from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from state.tables.fingerprint import (
    delivery_fingerprint,
    halves,
    is_delivery,
    next_version,
    of_halves,
    path_fingerprint,
    path_fingerprints,
    version_fingerprint,
    version_fingerprints,
)

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)


def test_the_halves_of_fingerprints_make_them_whole_again() -> None:
    fingerprints = [bytes(16), b"\xff" * 16, *(path_fingerprint("s", f"{each}") for each in range(9))]
    assert of_halves(*halves(fingerprints)).to_pylist() == fingerprints
    assert of_halves(*halves([])).to_pylist() == []


def test_fingerprints_are_the_same_for_ever() -> None:
    # They are in every store that was ever written: these values must not change.
    assert path_fingerprint("flights", "day=1/a.parquet").hex() == "7b4dccde00df9915622e2efb2fb4d227"
    assert version_fingerprint('"abc"', 12, MOMENT).hex() == "ef7c5ce49e38c000"


def test_source_and_path_are_kept_apart() -> None:
    assert path_fingerprint("a", "b/c") != path_fingerprint("a/b", "c")
    assert len(path_fingerprint("a", "b")) == 16


def test_etag_and_size_make_a_version_and_a_time_only_without_a_strong_etag() -> None:
    versions = {
        version_fingerprint('"abc"', 12, MOMENT),
        version_fingerprint('"abd"', 12, MOMENT),
        version_fingerprint('"abc"', 13, MOMENT),
        version_fingerprint('W/"abc"', 12, MOMENT),
        version_fingerprint('W/"abc"', 12, MOMENT + timedelta(microseconds=1)),
        version_fingerprint(None, 12, MOMENT),
        version_fingerprint(None, 12, MOMENT + timedelta(microseconds=1)),
        version_fingerprint(None, 12, None),
    }
    assert len(versions) == 8
    assert {len(version) for version in versions} == {8}
    later = MOMENT + timedelta(days=1)
    assert version_fingerprint('"abc"', 12, later) == version_fingerprint('"abc"', 12, MOMENT)
    assert version_fingerprint('"abc"', 12, None) == version_fingerprint('"abc"', 12, MOMENT)


def test_the_zone_in_which_a_time_is_told_makes_no_other_version() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5)))
    assert version_fingerprint(None, 1, elsewhere) == version_fingerprint(None, 1, MOMENT)


def test_many_at_once_are_the_same_as_one_at_a_time() -> None:
    paths = ["a", "", "tag=ü/ñ x", "\U0001f30a"]
    versions = [
        ('"e"', 0, MOMENT),
        ("", 7, MOMENT - timedelta(days=30_000)),
        ('"x"', 2**40, MOMENT),
        ("é", 1, MOMENT),
        ('W/"x"', 2, MOMENT),
    ]
    column = pa.array(["left out", *paths]).slice(1)
    assert path_fingerprints("s", column) == [path_fingerprint("s", path) for path in paths]
    etags, sizes = pa.array([etag for etag, *_ in versions]), pa.array([size for _, size, _ in versions])
    since = datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = pa.array([(at - since) // timedelta(microseconds=1) for *_, at in versions])
    expected = [version_fingerprint(*each) for each in versions]
    assert version_fingerprints(etags, sizes, microseconds) == expected
    strong = [0, 2, 3]
    columns = (column.take(pa.array(strong)) for column in (etags, sizes, microseconds))
    assert version_fingerprints(*columns) == [expected[at] for at in strong]
    assert path_fingerprints("s", pa.array([], pa.string())) == []


DAY = timedelta(days=1)
MONDAY = version_fingerprint('"abc"', 12, MOMENT)
OTHER = version_fingerprint('"abd"', 12, MOMENT)
MONDAYS = delivery_fingerprint(MONDAY, MOMENT)
TUESDAYS = delivery_fingerprint(MONDAY, MOMENT + DAY)


@pytest.mark.parametrize(
    ("known", "now", "time", "is_deleted", "deleted", "handed_on"),
    [
        # The object is there all the time, was touched, or vanished by itself and is back.
        (MONDAY, MONDAY, MOMENT, False, None, None),
        (MONDAY, MONDAY, MOMENT + DAY, False, None, None),
        (MONDAY, OTHER, MOMENT + DAY, False, None, OTHER),
        # The run has deleted it.
        (MONDAY, MONDAY, MOMENT, True, MONDAYS, None),
        (MONDAY, MONDAY, MOMENT.replace(microsecond=0), True, MONDAYS, None),
        (MONDAY, MONDAY, MOMENT + DAY, True, MONDAYS, TUESDAYS),
        (MONDAY, OTHER, MOMENT + DAY, True, MONDAYS, delivery_fingerprint(OTHER, MOMENT + DAY)),
        # It is the second delivery: there, touched, changed, deleted by the run.
        (TUESDAYS, MONDAY, MOMENT + DAY, False, None, None),
        (TUESDAYS, MONDAY, MOMENT + 2 * DAY, False, None, None),
        (TUESDAYS, OTHER, MOMENT + 2 * DAY, False, None, delivery_fingerprint(OTHER, MOMENT + 2 * DAY)),
        (TUESDAYS, MONDAY, MOMENT + DAY, True, TUESDAYS, None),
        (TUESDAYS, MONDAY, MOMENT + 2 * DAY, True, TUESDAYS, delivery_fingerprint(MONDAY, MOMENT + 2 * DAY)),
        # A third delivery has the content of the first: its version is in the ledger already.
        (delivery_fingerprint(OTHER, MOMENT), MONDAY, MOMENT + DAY, False, None, TUESDAYS),
    ],
)
def test_the_next_version_of_a_name(
    known: bytes, now: bytes, time: datetime, is_deleted: bool, deleted: bytes | None, handed_on: bytes | None
) -> None:
    assert next_version(known, now, time, is_deleted=is_deleted, deleted=deleted) == handed_on


def test_a_version_by_delivery_is_never_one_by_content() -> None:
    assert not is_delivery(MONDAY) and is_delivery(MONDAYS) and len(MONDAYS) == 8
    assert delivery_fingerprint(TUESDAYS, MOMENT) == MONDAYS != TUESDAYS
