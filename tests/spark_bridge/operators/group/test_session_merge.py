"""Sessions that touch are one, with the partials of all, whatever their order and number."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_bridge.operators.group.session_merge import together
from tests.cases import few

_TIME = pa.timestamp("us", tz="UTC")
_SCHEMA = pa.schema(
    [
        pa.field("__sw_key", pa.string(), nullable=False),
        ("k", pa.string()),
        ("session", pa.struct([pa.field("start", _TIME), pa.field("end", _TIME)])),
        ("n", pa.int64()),
    ]
)
_Session = tuple[str, int, int, int]


def _time(second: int) -> datetime:
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def _table(sessions: list[_Session]) -> pa.Table:
    rows = [
        {"__sw_key": key, "k": key, "session": {"start": _time(start), "end": _time(end)}, "n": n}
        for key, start, end, n in sessions
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _summed(groups: pa.Table, others: pa.Table) -> pa.Table:
    """Groups of one key each, in their order."""
    keys, known = (each.column("__sw_key").combine_chunks() for each in (groups, others))
    assert len(keys.unique()) == len(keys) == len(known) and sorted(keys.to_pylist()) == sorted(known.to_pylist())
    found = others.column("n").take(pc.index_in(keys, value_set=known))
    return groups.set_column(3, "n", pc.add(groups.column("n"), found))


def _one_by_one(sessions: list[_Session]) -> set[_Session]:
    whole: list[_Session] = []
    for key, start, end, n in sessions:
        touching = [each for each in whole if each[0] == key and each[1] <= end and start <= each[2]]
        whole = [each for each in whole if each not in touching]
        every = [(key, start, end, n), *touching]
        numbers = (min(each[1] for each in every), max(each[2] for each in every), sum(each[3] for each in every))
        whole.append((key, *numbers))
    return {*whole}


@pytest.mark.parametrize("seed", few(range(12), 0, 1))
def test_sessions_that_touch_are_one_as_if_they_came_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    for count in (1, 2, 7, 60, 300):
        length = chance.choice([1, 4, 200])
        sessions = [
            (chance.choice("abc"), start := chance.randrange(1_000), start + chance.randrange(length), 1 << at % 40)
            for at in range(count)
        ]
        found = together(_table(sessions), "session", _summed)
        rows = [(row["k"], row["session"]["start"], row["session"]["end"], row["n"]) for row in found.to_pylist()]
        assert found.column("__sw_key").to_pylist() == found.column("k").to_pylist()
        assert sorted(rows) == sorted(
            (key, _time(start), _time(end), n) for key, start, end, n in _one_by_one(sessions)
        )


def test_a_session_that_connects_a_thousand_others_takes_ten_rounds() -> None:
    rounds = 0

    def merge(groups: pa.Table, others: pa.Table) -> pa.Table:
        nonlocal rounds
        rounds += 1
        return _summed(groups, others)

    others = [("a", 10 * at, 10 * at + 3, 1) for at in range(1_000)]
    found = together(_table([*others, ("a", 0, 9_995, 1)]), "session", merge)
    assert found.column("n").to_pylist() == [1_001] and rounds == 10


def test_no_session_stays_no_session() -> None:
    assert together(_SCHEMA.empty_table(), "session", _summed).num_rows == 0
