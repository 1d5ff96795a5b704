from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from state.errors import ProtocolError
from state.tables.delta import Delta, DeltaBuilder
from state.tables.tables import PATCH, PUT

MOMENT = datetime(2026, 1, 31, tzinfo=UTC)


def built(*changes: tuple[str, bytes]) -> Delta:
    builder = DeltaBuilder()
    for change, key in changes:
        if change == "put":
            builder.put("seen", key, 1, version=b"12345678")
        else:
            builder.delete("seen", key, 1)
    return builder.build()


def test_the_builder_keeps_every_field_and_is_empty_afterwards() -> None:
    builder = DeltaBuilder()
    builder.put("queue", b"k", 255, source="s", path="p", version=b"12345678", size=3, last_modified=MOMENT)
    delta = builder.build()
    (row,) = delta.tables["queue"].to_pylist()
    assert (row["vnode"], row["op"], row["key"]) == (255, PUT, b"k")
    given = {name: value for name, value in row["row"].items() if value is not None}
    assert given == {"source": "s", "path": "p", "version": b"12345678", "size": 3, "last_modified": MOMENT}
    assert builder.build().is_empty
    assert not delta.is_empty
    assert delta.nbytes > 0


def test_rows_by_column_are_the_same_as_one_by_one() -> None:
    one_by_one, by_column = DeltaBuilder(), DeltaBuilder()
    for number in range(3):
        one_by_one.put("queue", b"%d" % number, number, path=f"p{number}", size=number)
    by_column.put_many("queue", [b"0", b"1", b"2"], [0, 1, 2], {"path": ["p0", "p1", "p2"], "size": range(3)})
    assert by_column.build().tables["queue"].equals(one_by_one.build().tables["queue"])


def test_the_last_change_of_a_key_wins_in_whatever_way_it_was_given() -> None:
    builder = DeltaBuilder()
    builder.put("queue", b"k", 1, size=1)
    builder.put_many("queue", [b"k", b"l"], [1, 1], {"size": [2, 2]})
    builder.patch("queue", b"l", 1, size=3)
    rows = builder.build().tables["queue"].to_pylist()
    assert {row["key"]: (row["op"], row["row"]["size"]) for row in rows} == {b"k": (PUT, 2), b"l": (PUT, 3)}


def test_a_patch_of_an_earlier_row_stays_a_patch() -> None:
    builder = DeltaBuilder()
    builder.patch("ledger", b"k", 1, deleted_epoch=5)
    builder.patch("ledger", b"k", 1, changed_epoch=4)
    (row,) = builder.build().tables["ledger"].to_pylist()
    assert (row["op"], row["row"]["deleted_epoch"], row["row"]["changed_epoch"]) == (PATCH, 5, 4)


def test_a_patch_lies_over_what_came_before_it_and_leaves_what_it_does_not_give() -> None:
    builder, later = DeltaBuilder(), DeltaBuilder()
    builder.put("queue", b"k", 1, path="p", size=1)
    builder.patch("queue", b"k", 1, size=2, path=None)
    later.patch("queue", b"k", 1, size=3)
    assert builder.build().changes == {"queue": {b"k": (PUT, 1, {"path": "p", "size": 2})}}
    builder.put("queue", b"k", 1, path="p", size=1)
    assert Delta.merge([builder.build(), later.build()]).changes == {
        "queue": {b"k": (PUT, 1, {"path": "p", "size": 3})}
    }


def test_a_delta_travels_between_processes() -> None:
    delta = built(("put", b"k"), ("delete", b"l"))
    copy = pickle.loads(pickle.dumps(delta))
    assert copy.tables["seen"].equals(delta.tables["seen"])


def test_names_that_the_store_does_not_have_are_refused_at_once() -> None:
    builder = DeltaBuilder()
    with pytest.raises(ProtocolError, match="no field colour"):
        builder.put("queue", b"k", 1, colour="red")
    with pytest.raises(ProtocolError, match="no field colour"):
        builder.put_many("queue", [b"k"], [1], {"colour": ["red"]})
    with pytest.raises(ProtocolError, match="'waiting' is not a valid table"):
        builder.delete("waiting", b"k", 1)
