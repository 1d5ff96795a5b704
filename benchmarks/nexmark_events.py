"""Events of Nexmark, as Arrow tables: persons, auctions and bids of an online auction.

Made from the published definition (P. Tucker and others, "NEXMark: A Benchmark for Queries over Data Streams", and
the documentation of Apache Beam's and Flink's Nexmark): the columns; of 50 events one person, three auctions and 46
bids; half of the bids for a hot auction; three quarters of the bids of a hot bidder, and of the auctions of a hot
seller.  Ids count the events of their kind, and the hot ones change with every hundredth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Tables = Mapping[str, pa.Table]
"""`person`, `auction`, `bid` → rows."""

_AT = pa.timestamp("us", tz="UTC")
SCHEMAS: Mapping[str, pa.Schema] = {
    "person": pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("email", pa.string()),
            ("card", pa.string()),
            ("city", pa.string()),
            ("state", pa.string()),
            ("at", _AT),
            ("extra", pa.string()),
        ]
    ),
    "auction": pa.schema(
        [
            ("id", pa.int64()),
            ("item", pa.string()),
            ("description", pa.string()),
            ("initial_bid", pa.int64()),
            ("reserve", pa.int64()),
            ("at", _AT),
            ("expires", _AT),
            ("seller", pa.int64()),
            ("category", pa.int64()),
            ("extra", pa.string()),
        ]
    ),
    "bid": pa.schema(
        [
            ("auction", pa.int64()),
            ("bidder", pa.int64()),
            ("price", pa.int64()),
            ("channel", pa.string()),
            ("url", pa.string()),
            ("at", _AT),
            ("extra", pa.string()),
        ]
    ),
    "side": pa.schema([("key", pa.int64()), ("value", pa.string())]),
}
"""Of the files; `side` is the bounded table that a query joins."""

SIDE_ROWS = 10_000
_PERSONS, _AUCTIONS, _CYCLE = 1, 3, 50
_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1_000, 10, 5
_HOT_STRIDE, _LEAD = 100, 10
_ACTIVE_PERSONS, _OPEN_AUCTIONS = 1_000, 100
_HOT_BIDS, _HOT_PERSONS = 1 / 2, 3 / 4
_CHANNELS = 10_000
_FIRST_NAMES = ("Ada", "Bo", "Cem", "Dana", "Eli", "Fay", "Gus", "Hana", "Ivo", "June", "Kai")
_LAST_NAMES = ("Abel", "Brook", "Castle", "Dorn", "Ebert", "Frost", "Gale", "Hale", "Ivory")
_CITIES = ("Ashton", "Bend", "Boise", "Kent", "Laramie", "Mesa", "Phoenix", "Salem", "Tempe", "Yuma")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_HOT_CHANNELS = ("Apple", "Google", "Facebook", "Baidu")

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Nexmark:
    """An endless sequence of events, the same for the same arguments.

    Args:
        seed: of the values.
        start: the time of the first event, with its zone.
        gap_us: microseconds from one event to the next.
    """

    seed: int
    start: datetime
    gap_us: int

    def events(self, first: int, count: int) -> Tables:
        """The events with the numbers from `first` on, by their kind, each in the order of time."""
        random = np.random.default_rng([self.seed, first])
        numbers = np.arange(first, first + count)
        places = numbers % _CYCLE
        is_person, is_bid = places < _PERSONS, places >= _PERSONS + _AUCTIONS
        return {
            "person": self._persons(numbers[is_person], random),
            "auction": self._auctions(numbers[~is_person & ~is_bid], random),
            "bid": self._bids(numbers[is_bid], random),
        }

    def _persons(self, numbers: _Numbers, random: np.random.Generator) -> pa.Table:
        count = len(numbers)
        first, last = _one_of(_FIRST_NAMES, count, random), _one_of(_LAST_NAMES, count, random)
        card = [pc.utf8_lpad(_text_of(random.integers(0, 10_000, count)), 4, "0") for _ in range(4)]
        return _table(
            "person",
            id=_FIRST_ID + numbers // _CYCLE,
            name=_joined(first, " ", last),
            email=_joined(_letters(random, 5, 9, count), "@", _letters(random, 4, 7, count), ".example"),
            card=_joined(card[0], " ", card[1], " ", card[2], " ", card[3]),
            city=_one_of(_CITIES, count, random),
            state=_one_of(_STATES, count, random),
            at=self._times(numbers),
            extra=_letters(random, 80, 160, count),
        )

    def _auctions(self, numbers: _Numbers, random: np.random.Generator) -> pa.Table:
        count, prices = len(numbers), _prices(random, len(numbers))
        open_us = 2 * _OPEN_AUCTIONS * _CYCLE // _AUCTIONS * self.gap_us
        return _table(
            "auction",
            id=_FIRST_ID + numbers // _CYCLE * _AUCTIONS + numbers % _CYCLE - _PERSONS,
            item=_letters(random, 5, 20, count),
            description=_letters(random, 30, 100, count),
            initial_bid=prices,
            reserve=prices + _prices(random, count),
            at=self._times(numbers),
            expires=self._times(numbers, random.integers(1, open_us + 1, count)),
            seller=_people(numbers, random, hot_place=0),
            category=_FIRST_CATEGORY + random.integers(0, _CATEGORIES, count),
            extra=_letters(random, 150, 350, count),
        )

    def _bids(self, numbers: _Numbers, random: np.random.Generator) -> pa.Table:
        count = len(numbers)
        last = numbers // _CYCLE * _AUCTIONS + _AUCTIONS - 1
        auctions = _some(last, _OPEN_AUCTIONS, _HOT_BIDS, random, hot_place=0)
        channel = random.integers(0, _CHANNELS, count)
        hot = random.integers(0, 2 * len(_HOT_CHANNELS), count)
        is_hot = hot < len(_HOT_CHANNELS)
        parts = [_letters(random, 3, 6, count) for _ in range(3)]
        page = _joined("https://www.auction.example/", parts[0], "/", parts[1], "/", parts[2], "/item.htm?query=1")
        has_channel = ~is_hot & (random.random(count) < 0.9)
        return _table(
            "bid",
            auction=_FIRST_ID + auctions,
            bidder=_people(numbers, random, hot_place=1),
            price=_prices(random, count),
            channel=pc.if_else(
                is_hot, pa.array(_HOT_CHANNELS).take(hot % len(_HOT_CHANNELS)), _joined("channel-", _text_of(channel))
            ),
            url=pc.if_else(has_channel, _joined(page, "&channel_id=", _text_of(channel)), page),
            at=self._times(numbers),
            extra=_letters(random, 10, 60, count),
        )

    def _times(self, numbers: _Numbers, later_us: _Numbers | int = 0) -> pa.Array:
        start_us = pa.scalar(self.start, _AT).value
        return pa.array(start_us + numbers * self.gap_us + later_us).cast(pa.timestamp("us")).cast(_AT)


def side_table(rows: int = SIDE_ROWS) -> pa.Table:
    """The bounded table: a value for each key from 0 on."""
    keys = np.arange(rows)
    return pa.table([pa.array(keys), _joined("value of ", _text_of(keys))], schema=SCHEMAS["side"])


def write_files(nexmark: Nexmark, place: Path, files: int, events: int) -> None:
    """Writes so many Parquet files of each kind, `bid/0000.parquet` and so on, and `side/0000.parquet`.

    Args:
        nexmark: makes the events.
        place: the directory, which must not be there.
        files: the number of files of each kind.
        events: the number of events of which each takes those of its kind.
    """
    (place / "side").mkdir(parents=True)
    pq.write_table(side_table(), place / "side" / "0000.parquet")
    for number in range(files):
        for name, rows in nexmark.events(number * events, events).items():
            (place / name).mkdir(exist_ok=True)
            pq.write_table(rows, place / name / f"{number:04}.parquet")


def _people(numbers: _Numbers, random: np.random.Generator, *, hot_place: int) -> _Numbers:
    return _FIRST_ID + _some(numbers // _CYCLE, _ACTIVE_PERSONS, _HOT_PERSONS, random, hot_place=hot_place)


def _some(last: _Numbers, recent: int, hot_share: float, random: np.random.Generator, *, hot_place: int) -> _Numbers:
    """For each event one of the `recent` ones, of those that come next, or a hot one.

    Args:
        last: the last one that is there at the event.
        recent: the number of those to choose from.
        hot_share: of the events that have the hot one.
        random: the generator.
        hot_place: of the hot one in each hundred.
    """
    lowest = np.maximum(0, last - recent)
    chosen = lowest + (random.random(len(last)) * (last + _LEAD + 1 - lowest)).astype(np.int64)
    hot = last // _HOT_STRIDE * _HOT_STRIDE + hot_place
    return np.where(random.random(len(last)) < hot_share, hot, chosen)


def _prices(random: np.random.Generator, count: int) -> _Numbers:
    """From 1 to a million in cents, as many of each order of magnitude."""
    return np.rint(100 * 10 ** (6 * random.random(count))).astype(np.int64)


def _letters(random: np.random.Generator, shortest: int, longest: int, count: int) -> pa.Array:
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(random.integers(shortest, longest + 1, count), out=offsets[1:])
    letters = random.integers(ord("a"), ord("z") + 1, offsets[-1], np.uint8)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def _one_of(values: Sequence[str], count: int, random: np.random.Generator) -> pa.Array:
    return pa.array(values).take(pa.array(random.integers(0, len(values), count)))


def _text_of(numbers: _Numbers) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _table(kind: str, /, **columns: pa.Array | _Numbers) -> pa.Table:
    return pa.table(columns).cast(SCHEMAS[kind])
