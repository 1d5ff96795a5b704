"""ETags in one form, also if servers send them in different forms."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from state.objects.etag import is_strong, normal_etag, normal_etags, same_etag
from state.tables.fingerprint import version_fingerprint, version_fingerprints

FORMS = [
    ('"abc"', '"abc"'),
    ("abc", '"abc"'),
    (' "abc"', '"abc"'),
    ('W/"abc"', 'W/"abc"'),
    ("W/abc", 'W/"abc"'),
    ('w/"abc"', 'W/"abc"'),
    ('"a"b"', '"a"b"'),
    ('"', '"""'),
    ('""', ""),
    ("", ""),
    (None, ""),
]


@pytest.mark.parametrize(("given", "normal"), FORMS)
def test_an_etag_has_one_form(given: str | None, normal: str) -> None:
    assert normal_etag(given) == normal
    assert normal_etag(normal) == normal
    assert is_strong(normal) == (normal.startswith('"'))


def test_many_at_once_are_the_same_as_one_at_a_time() -> None:
    given, normal = zip(*FORMS, strict=True)
    assert normal_etags(pa.array(given, pa.string())).to_pylist() == list(normal)
    quoted = pa.array(['"a"', '"b"'], pa.string())
    assert normal_etags(quoted) is quoted or normal_etags(quoted).equals(quoted)
    assert normal_etags(pa.array([], pa.string())).to_pylist() == []


def test_quotes_make_no_other_version() -> None:
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    forms = ['"abc"', "abc", ' "abc" ']
    assert len({version_fingerprint(form, 12, moment) for form in forms}) == 1
    weak = {version_fingerprint(form, 12, moment) for form in ('W/"abc"', "W/abc", 'w/"abc"')}
    assert len(weak) == 1 and weak != {version_fingerprint("abc", 12, moment)}
    etags = pa.array([*forms, "W/abc", ""], pa.string())
    many = version_fingerprints(etags, pa.array([12] * 5), pa.array([int(moment.timestamp() * 1_000_000)] * 5))
    assert many == [version_fingerprint(each, 12, moment) for each in etags.to_pylist()]


def test_no_etag_equals_none() -> None:
    assert same_etag("abc", '"abc"')
    assert not same_etag("abc", "abd")
    assert not same_etag("abc", 'W/"abc"')
    assert not same_etag(None, None) and not same_etag("", "") and not same_etag("abc", None)
