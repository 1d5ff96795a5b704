from __future__ import annotations

import pyarrow as pa
import pytest

from actors.listing.listing_digests import ListingDigests
from actors.objects.listing_page import LISTED


def rows(numbers: list[int], **changes: list[object]) -> pa.RecordBatch:
    columns: dict[str, list[object]] = {
        "path": [f"day={n // 100}/part-{n:06}.csv" for n in numbers],
        "etag": [f'"{n * 0x9E3779B97F4A7C15 % 2**64:016x}"' for n in numbers],
        "size": [n % 97 for n in numbers],
        "modified_us": [n * 1_000_000 for n in numbers],
    }
    (batch,) = pa.table({**columns, **changes}, schema=LISTED).to_batches()
    return batch


def list_all(known: ListingDigests, batch: pa.RecordBatch, page: int = 1_000) -> int:
    """A listing in pages; returns how many names were looked up."""
    known.begin_listing()
    looked_up = 0
    for start in range(0, batch.num_rows, page):
        for digest in known.unknown(batch.slice(start, page)):
            looked_up += digest.stop - digest.start
            known.put(digest, digest.stop - digest.start)
    return looked_up


def test_the_same_listing_again_is_not_looked_up() -> None:
    known, batch = ListingDigests(), rows(list(range(5_000)))
    assert list_all(known, batch) == 5_000
    for _ in range(3):
        assert list_all(known, batch) == 0
        assert known.skipped == 5_000


def test_a_new_name_changes_few_digests() -> None:
    known, numbers = ListingDigests(), [*range(0, 10_000, 2)]
    list_all(known, rows(numbers))
    looked_up = list_all(known, rows(sorted([*numbers, 1_001])))
    assert 1 <= looked_up < 2_000, "its own digest, and those that the ends of pages cut"


@pytest.mark.parametrize("column", ["path", "etag", "size", "modified_us"])
def test_whatever_changes_is_looked_up(column: str) -> None:
    numbers = list(range(3_000))
    before = rows(numbers)
    for at in (0, 1_234, 2_999):
        known = ListingDigests()
        list_all(known, before)
        values = before[column].to_pylist()
        values[at] = values[at] + 1 if isinstance(values[at], int) else values[at] + "x"
        looked_up = list_all(known, rows(numbers, **{column: values}))
        assert 1 <= looked_up < 1_000


def test_a_letter_that_moves_from_one_name_to_the_next_is_a_change() -> None:
    known = ListingDigests()
    list_all(known, rows([1, 2], path=["ab", "c"]))
    assert list_all(known, rows([1, 2], path=["a", "bc"])) == 2


def test_only_the_last_listing_counts() -> None:
    known, first, second = ListingDigests(), rows([1, 2, 3]), rows([4, 5])
    list_all(known, first)
    list_all(known, second)
    assert list_all(known, first) == 3


def test_what_is_forgotten_is_looked_up() -> None:
    known, batch = ListingDigests(), rows([1, 2, 3])
    list_all(known, batch)
    known.forget()
    assert list_all(known, batch) == 3


def test_names_without_etags_have_digests_and_empty_pages_have_none() -> None:
    known, batch = ListingDigests(), rows([1, 2, 3], etag=["", "", ""])
    assert [list_all(known, batch), list_all(known, batch)] == [3, 0]
    assert known.unknown(batch.slice(3)) == []
