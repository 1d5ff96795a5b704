from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa

from state.tables.fingerprint import (
    halves,
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
    assert version_fingerprint('"abc"', 12, MOMENT).hex() == "df411e061b903bd8"


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
