from __future__ import annotations

from datetime import datetime, timedelta, timezone

from state.fingerprint import path_fingerprint, version_fingerprint

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=timezone.utc)


def test_fingerprints_are_the_same_for_ever() -> None:
    # They are in every store that was ever written: these values must not change.
    assert path_fingerprint("flights", "day=1/a.parquet").hex() == "7b4dccde00df9915622e2efb2fb4d227"
    assert version_fingerprint('"abc"', 12, MOMENT).hex() == "6a96a173853be4b4"


def test_source_and_path_are_kept_apart() -> None:
    assert path_fingerprint("a", "b/c") != path_fingerprint("a/b", "c")
    assert len(path_fingerprint("a", "b")) == 16


def test_anything_that_a_listing_tells_makes_another_version() -> None:
    versions = {
        version_fingerprint('"abc"', 12, MOMENT),
        version_fingerprint('"abd"', 12, MOMENT),
        version_fingerprint('"abc"', 13, MOMENT),
        version_fingerprint('"abc"', 12, MOMENT + timedelta(microseconds=1)),
        version_fingerprint(None, 12, MOMENT),
        version_fingerprint('"abc"', 12, None),
    }
    assert len(versions) == 6
    assert {len(version) for version in versions} == {8}


def test_the_zone_in_which_a_time_is_told_makes_no_other_version() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5)))
    assert version_fingerprint(None, 1, elsewhere) == version_fingerprint(None, 1, MOMENT)
