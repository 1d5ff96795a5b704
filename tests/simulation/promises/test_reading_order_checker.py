"""A file that is read before an earlier one breaks the order."""

from __future__ import annotations

from actors.files import ReadingOrder
from actors.protocol.run_state import RunState
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promises.reading_order_checker import ReadingOrderChecker
from tests.simulation.promises.store_versions import breaks, file_tables, finished, put, waiting
from tests.simulation.world.bucket import Bucket

BUCKET = Bucket(page_size=10)
A, B = put(BUCKET, "a"), put(BUCKET, "b")
B_BEFORE_A = file_tables([finished(B, listed_epoch=2)], [waiting(A)])


def check(tables: FileTables, order: ReadingOrder | None = "name") -> None:
    ReadingOrderChecker(order).check(tables)


def test_files_may_be_read_in_their_order() -> None:
    check(file_tables([finished(A)], [waiting(B, 2)]))


def test_a_file_that_is_read_before_an_earlier_one_breaks_the_order() -> None:
    check(B_BEFORE_A, order=None)
    with breaks("order", "b was read before a"):
        check(B_BEFORE_A)


def test_two_half_read_files_break_the_order() -> None:
    with breaks("order", "['a', 'b'] are half read"):
        check(file_tables(queue=[waiting(A, 1), waiting(B, 1)]))


def test_a_file_may_be_read_before_one_that_was_listed_with_it_or_later() -> None:
    check(file_tables([finished(B)], [waiting(A)]))


def test_a_run_that_looks_for_a_poison_file_need_not_keep_the_order() -> None:
    checker = ReadingOrderChecker("name")
    checker.on_state(RunState(1, "running", 1, 1, files_at_once=1))
    checker.check(B_BEFORE_A)
