"""Arrow columns of any type, with values that Python can say, for property tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Values = st.SearchStrategy[Any]
Typed = tuple[pa.DataType, Values]
"""A type, and what may be in a column of it besides null."""

_FIRST, _LAST = datetime(1700, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - what nanoseconds can say
_ZONES = (None, "UTC", "Europe/Berlin", "Asia/Kolkata", "-03:00")
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}


def _integers(bits: int, *, signed: bool) -> Values:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


def _timestamps() -> st.SearchStrategy[Typed]:
    def of(unit: str, zone: str | None) -> Typed:
        step = _UNITS[unit]
        span = int((_LAST - _FIRST) / timedelta(microseconds=step))
        values = st.integers(0, span).map(lambda n: _FIRST + timedelta(microseconds=n * step))
        if zone is not None:
            values = values.map(lambda at: at.replace(tzinfo=UTC))
        return pa.timestamp(unit, zone), values

    return st.builds(of, st.sampled_from(sorted(_UNITS)), st.sampled_from(_ZONES))


def _decimals() -> st.SearchStrategy[Typed]:
    def of(make: Callable[..., pa.DataType], precision: int, scale: int) -> Typed:
        scale = min(scale, precision)
        digits = st.integers(-(10**precision) + 1, 10**precision - 1)
        return make(precision, scale), digits.map(lambda n: Decimal(f"{n}e-{scale}"))

    kinds = [(pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 38)]
    return st.sampled_from(kinds).flatmap(
        lambda kind: st.builds(of, st.just(kind[0]), st.integers(1, kind[1]), st.integers(0, 20))
    )


_SIMPLE: list[Typed] = [
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    *((getattr(pa, f"int{bits}")(), _integers(bits, signed=True)) for bits in (8, 16, 32, 64)),
    *((getattr(pa, f"uint{bits}")(), _integers(bits, signed=False)) for bits in (8, 16, 32, 64)),
    (pa.float16(), st.floats(width=16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    *((kind, _TEXT) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, st.binary(max_size=5)) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    *((kind, st.dates(date(1, 1, 1), date(9999, 12, 31))) for kind in (pa.date32(), pa.date64())),
    *((kind, st.times().map(lambda at: at.replace(microsecond=0))) for kind in (pa.time32("s"), pa.time64("us"))),
    (pa.duration("ms"), st.integers(0, 10**6).map(lambda n: timedelta(milliseconds=n))),
    (pa.month_day_nano_interval(), st.just(pa.MonthDayNano([1, 2, 3]))),
]


def _leaves() -> st.SearchStrategy[Typed]:
    return st.one_of(st.sampled_from(_SIMPLE), _timestamps(), _decimals())


def _nullable(values: Values) -> Values:
    return st.one_of(st.none(), values)


def _nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def lists(make: Callable[[pa.DataType], pa.DataType], typed: Typed) -> Typed:
        return make(typed[0]), st.lists(_nullable(typed[1]), max_size=3)

    def fixed(typed: Typed) -> Typed:
        return pa.list_(typed[0], 2), st.lists(_nullable(typed[1]), min_size=2, max_size=2)

    def structs(parts: list[Typed]) -> Typed:
        names = [f"f{number}" for number in range(len(parts))]
        values = st.fixed_dictionaries({n: _nullable(v) for n, (_, v) in zip(names, parts, strict=True)})
        return pa.struct([(n, kind) for n, (kind, _) in zip(names, parts, strict=True)]), values

    def maps(typed: Typed) -> Typed:
        return pa.map_(pa.string(), typed[0]), st.dictionaries(_TEXT, _nullable(typed[1]), max_size=3).map(
            lambda found: list(found.items())
        )

    return st.one_of(
        st.builds(lists, st.sampled_from([pa.list_, pa.large_list]), inner),
        st.builds(fixed, inner),
        st.builds(structs, st.lists(inner, min_size=1, max_size=3)),
        st.builds(maps, inner),
    )


def _column(typed: Typed, encoding: str, rows: list[Any]) -> pa.Array:
    column = pa.array(rows, typed[0])
    if encoding == "dictionary" and not pa.types.is_null(typed[0]):
        try:
            return column.dictionary_encode()
        except pa.ArrowNotImplementedError:
            return column
    # No file format has runs of nested values, and Arrow cannot take all of them apart.
    if encoding == "runs" and not pa.types.is_nested(typed[0]):
        return pa.RunEndEncodedArray.from_arrays(list(range(1, len(rows) + 1)), column)
    return column


@st.composite
def columns(draw: st.DrawFn, most_columns: int, num_rows: int) -> dict[str, pa.Array]:
    """Columns of any types, by name, each of them with so many rows."""
    typed = st.recursive(_leaves(), _nested, max_leaves=4)
    found = {}
    for number, each in enumerate(draw(st.lists(typed, min_size=1, max_size=most_columns))):
        rows = draw(st.lists(_nullable(each[1]), min_size=num_rows, max_size=num_rows))
        encoding = draw(st.sampled_from(["plain", "plain", "plain", "dictionary", "runs"]))
        found[f"c{number}"] = _column(each, encoding, rows)
    return found


def said(value: Any) -> Any:
    """A value of any type, so that equal ones are equal: instants in UTC, days and numbers as such, no NaN."""
    if isinstance(value, datetime):
        at = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [said(each) for each in value]
    if isinstance(value, dict):
        return {name: said(each) for name, each in value.items()}
    assert not isinstance(value, (time, timedelta)), "these have no form in Spark"
    return value
