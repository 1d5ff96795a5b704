"""The steps from one number of fetch actors to another, as the coordinator takes them and as a fetch actor does."""

from __future__ import annotations

from actors.coordination.barrier_scheduler import BarrierScheduler
from actors.coordination.instructions import Connect, EndFetchers, PrepareMove
from actors.coordination.rescaling import Rescaling
from actors.exchange.barrier_aligner import BarrierAligner
from actors.exchange.dispatch_executor import DispatchExecutor
from actors.exchange.edge import Outlet
from actors.fetching.fetch_executor import FetchExecutor
from actors.fetching.file_versions import FileVersions
from actors.fetching.handover import Handover, VnodeArrivals
from actors.fetching.instructions import CloseFile, FetchInstruction, HandOver
from actors.fetching.read_outcomes import PieceRead
from actors.fetching.version_set import VersionSet
from actors.files import ChangedFile, RetriedFile, Vanished
from actors.protocol.barrier import Barrier, Pause, Throttle, Update
from actors.protocol.blocks import BadRecords
from actors.protocol.counters import SourceProgress
from actors.protocol.instructions import End, Send
from actors.protocol.messages import ChangedFiles, NewFiles, RetriedFiles
from actors.protocol.reports import CollectReport, FetchProgress, ListProgress
from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names
from actors.rows import BadRecord, Rows
from actors.settings import BarrierSettings, FetchSettings
from actors.sources.source import FilePolicy
from tests.actors.flow import INITIAL, barrier, delta_rows, emitted, file, files, of, reads, report, rows, sent

ONE = VnodeMapping.even(fetcher_names(0, 1))
TWO = ONE.rescaled(fetcher_names(0, 2))
NAMES = [f"f{number}" for number in range(40)]
MOVING = [name for name in NAMES if TWO.owner_of("s", name) == "fetch-1"]
STAYING = [name for name in NAMES if TWO.owner_of("s", name) == "fetch-0"]


def fetcher(name: str = "fetch-0", *, num_fetchers: int = 1, concurrency: int = 32) -> FetchExecutor:
    return FetchExecutor(
        actor=name,
        settings=FetchSettings(concurrency=concurrency),
        num_fetchers=num_fetchers,
        outlet=Outlet(name),
        files=FileVersions((), VersionSet()),
        known_schemas=["s"],
        poisoned={},
        policies={"s": FilePolicy()},
    )


def started() -> FetchExecutor:
    executor = fetcher()
    executor.on_message(INITIAL, 0.0)
    return executor


def piece(
    executor: FetchExecutor, path: str, count: int, *, first_row: int = 0, last: bool = True
) -> list[FetchInstruction]:
    return executor.on_read([PieceRead(file(path), rows(count, first_row), last=last, requests=1, bytes_read=1)], 0.0)


def handover(instructions: list[FetchInstruction]) -> Handover:
    (given,) = of(HandOver, instructions)
    assert isinstance(given, HandOver)
    return given.handover


def paths(given: Handover) -> list[str]:
    return [each.file.path for each in given.files]


# -- a fetch actor ---------------------------------------------------------------------------------------------------


def test_files_go_with_their_vnodes_after_the_barrier_and_their_rows_of_state_stay_as_they_are() -> None:
    executor = fetcher(concurrency=1)
    executor.on_message(INITIAL, 0.0)
    executor.on_message(files(*NAMES), 0.0)
    moved = executor.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    assert {row["path"] for row in delta_rows(moved, "queue")} == set(NAMES), "they are sealed by the one before"
    assert paths(handover(moved)) == MOVING
    at = [type(each) for each in moved]
    assert at.index(Send) < at.index(HandOver), "the barrier goes first"
    taker = fetcher("fetch-1", num_fetchers=2)
    assert of(Send, taker.on_message(barrier(1, Update(ONE, TWO)), 0.0)) == [], "it begins behind this barrier"
    assert [path for path, _ in reads(taker.on_message(handover(moved), 0.0))] == MOVING
    assert delta_rows(taker.on_message(barrier(2), 0.0), "queue") == [], "no row is written again"
    assert executor.progress().backlog == len(STAYING)
    assert (executor.progress().moved, taker.progress().moved) == (-len(MOVING), len(MOVING))


def test_bad_records_are_told_before_a_barrier_that_moves_vnodes_too() -> None:
    executor, path = started(), MOVING[0]
    executor.on_message(files(path), 0.0)
    bad = Rows(rows(2).table, 0, (BadRecord(2, b"x", "no number"),))
    read = executor.on_read([PieceRead(file(path), bad, last=True, requests=1, bytes_read=1)], 0.0)
    moved = executor.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    told = [each.message for each in of(Send, [*read, *moved])]
    assert isinstance(told[told.index(BadRecords({"s": 1})) + 1], Barrier)


def test_the_next_owner_retries_no_version_whose_object_has_changed() -> None:
    executor = started()
    bad = file(MOVING[0])
    executor.on_message(ChangedFiles((ChangedFile(bad.version, file(MOVING[0], etag="2")),)), 0.0)
    moved = executor.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    taker = fetcher("fetch-1", num_fetchers=2)
    taker.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    taker.on_message(handover(moved), 0.0)
    chosen = RetriedFile(bad, 0, 0, 1, None, 0, requests=1, bytes_read=1)
    assert reads(taker.on_message(RetriedFiles((chosen,)), 0.0)) == []


def test_a_half_read_file_goes_on_at_its_row_and_what_was_not_emitted_is_read_again() -> None:
    path = MOVING[0]
    executor = started()
    executor.on_message(files(path), 0.0)
    assert emitted(piece(executor, path, 3, last=False)) == [], "the next piece is being read"
    executor.on_message(barrier(1), 0.0)
    executor.on_message(barrier(2, Pause()), 0.0)
    piece(executor, path, 2, first_row=3)
    moved = executor.on_message(barrier(3, Update(ONE, TWO, paused=True)), 0.0)
    assert [each.row_offset for each in handover(moved).files] == [3]
    assert [each.file.path for each in of(CloseFile, moved)] == [path]
    taker = fetcher("fetch-1")
    taker.on_message(barrier(3, Update(ONE, TWO)), 0.0)
    assert reads(taker.on_message(handover(moved), 0.0)) == [(path, 3)]
    assert executor.progress().sources["s"] == SourceProgress(rows=3, bytes=2, requests=2)


def test_an_answer_about_a_file_that_was_handed_over_is_ignored() -> None:
    path = MOVING[0]
    executor = started()
    executor.on_message(files(path), 0.0)
    moved = executor.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    assert of(CloseFile, moved) == [], "it is being read just now"
    late = piece(executor, path, 3)
    assert [type(each) for each in late] == [CloseFile]
    assert report(executor.on_message(barrier(2), 0.0)).counts.rows == 0


def test_messages_about_what_has_not_come_wait_for_it() -> None:
    path = MOVING[0]
    executor = started()
    executor.on_message(files(path), 0.0)
    moved = executor.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    taker = fetcher("fetch-1")
    taker.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    change = ChangedFiles((ChangedFile(file(path).version, file(path, etag="2")),))
    assert taker.on_message(change, 0.0) == taker.on_message(barrier(2), 0.0) == []
    came = taker.on_message(handover(moved), 0.0)
    assert [message for message in sent(came) if isinstance(message, Barrier)] == [barrier(2)]
    assert len(delta_rows(came, "queue")) == 1, "the later version is noted beside the one that came"


def test_a_handover_may_come_before_its_barrier() -> None:
    taker = fetcher("fetch-1")
    assert taker.on_message(Handover("fetch-0", 2), 0.0) == []
    taker.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    assert reads(taker.on_message(files(MOVING[0]), 0.0)) == [(MOVING[0], 0)]


def test_who_loses_every_vnode_seals_once_more_and_says_how_far_it_was() -> None:
    leaving = fetcher("fetch-1")
    leaving.on_message(barrier(1, Update(ONE, TWO)), 0.0)
    leaving.on_message(Handover("fetch-0", 2), 0.0)
    leaving.on_message(NewFiles((file("a"), file("b"))), 0.0)
    piece(leaving, "a", 3)
    left = leaving.on_message(barrier(2, Update(TWO, ONE)), 0.0)
    assert (isinstance(left[-1], End), paths(handover(left))) == (True, ["b"])
    last = report(left).last_progress
    assert last is not None and (last.received, last.moved, last.backlog, last.sources["s"].done) == (2, -1, 0, 1)
    assert piece(leaving, "b", 3) == [CloseFile(file("b"))]


def test_limits_are_shared_by_as_many_as_there_are_and_who_begins_knows_what_is_in_force() -> None:
    slow = Throttle(files_per_second=4.0)
    executor = started()
    executor.on_message(barrier(1, slow), 0.0)
    executor.on_message(barrier(2, Update(ONE, TWO, throttle=slow)), 0.0)
    taker = fetcher("fetch-1", num_fetchers=2)
    taker.on_message(barrier(2, Update(ONE, TWO, throttle=slow)), 0.0)
    taker.on_message(Handover("fetch-0", 3), 0.0)
    for one, own in ((executor, STAYING), (taker, MOVING)):
        assert len(reads(one.on_message(files(*own), 0.0))) == 1
        assert len(reads(one.on_time(0.49))) == 0
        assert len(reads(one.on_time(0.5))) == 1, "two a second each"
    paused = fetcher("fetch-1")
    paused.on_message(barrier(1, Update(ONE, TWO, paused=True)), 0.0)
    assert reads(paused.on_message(Handover("fetch-0", 2), 0.0)) == reads(paused.on_message(files("a"), 0.0)) == []


def test_before_they_move_no_file_of_these_vnodes_is_opened_and_open_ones_are_read_to_their_end() -> None:
    executor = fetcher(concurrency=2)
    executor.on_message(INITIAL, 0.0)
    executor.on_message(files(MOVING[0], MOVING[1], STAYING[0]), 0.0)
    executor.on_moving(1, TWO.vnodes_of("fetch-1"), 0.0, rest=False)
    assert reads(piece(executor, MOVING[1], 3)) == [(STAYING[0], 0)]
    executor.on_message(files(*MOVING[2:], *STAYING[1:3]), 0.0)
    assert reads(piece(executor, MOVING[0], 3, last=False)) == [(MOVING[0], 3)], "it is open"
    assert executor.progress().ready == 0
    assert reads(piece(executor, MOVING[0], 2, first_row=3)) == [(STAYING[1], 0)]
    executor.on_message(barrier(1), 0.0)
    assert executor.progress().ready == 1, "what was read is emitted"
    piece(executor, STAYING[0], 1)
    piece(executor, STAYING[1], 1)
    assert reads(piece(executor, STAYING[2], 1)) == []
    moved = executor.on_message(barrier(2, Update(ONE, TWO)), 0.0)
    assert paths(handover(moved)) == MOVING[2:]


def test_open_files_that_have_to_rest_stay_at_the_end_of_their_piece() -> None:
    path = MOVING[0]
    executor = started()
    executor.on_message(files(path), 0.0)
    executor.on_moving(1, TWO.vnodes_of("fetch-1"), 0.0, rest=False)
    executor.on_moving(1, TWO.vnodes_of("fetch-1"), 0.0, rest=True)
    assert executor.progress().ready == 0, "a piece is being read"
    rested = piece(executor, path, 3, last=False)
    assert (reads(rested), emitted(rested), executor.progress().ready) == ([], [3], 1)


# -- everybody else --------------------------------------------------------------------------------------------------


def test_a_dispatcher_sends_the_barrier_to_old_and_new_owners_and_what_follows_to_new_ones() -> None:
    dispatch = DispatchExecutor(actor="dispatcher", edges=["list-s"], mapping=TWO)
    three = TWO.rescaled(("fetch-0", "fetch-2", "fetch-3"))
    dispatch.on_message("list-s", INITIAL)
    (passed,) = of(Send, dispatch.on_message("list-s", barrier(1, Update(TWO, three))))
    assert set(passed.to) == {"fetch-0", "fetch-1", "fetch-2", "fetch-3"}
    routed = {
        each.path: send.to
        for send in of(Send, dispatch.on_message("list-s", files(*NAMES)))
        for each in send.message.files
    }
    assert routed == {name: (three.owner_of("s", name),) for name in NAMES}
    (passed,) = of(Send, dispatch.on_message("list-s", barrier(2)))
    assert set(passed.to) == set(three.owners)


def test_new_inputs_are_held_until_the_barrier_has_come_from_all_old_ones() -> None:
    update = barrier(1, Update(TWO, ONE.rescaled(("fetch-0", "fetch-2"))))
    aligner = BarrierAligner(["fetch-0", "fetch-1"], lambda each: ["fetch-0", "fetch-2"] if each == update else None)
    assert aligner.on_message("fetch-2", files("early")) == []
    assert aligner.on_message("fetch-0", update) == aligner.on_message("fetch-0", files("later")) == []
    assert aligner.on_message("fetch-1", update) == [update, files("later"), files("early")]
    assert aligner.on_message("fetch-2", barrier(2)) == []
    assert aligner.on_message("fetch-0", barrier(2)) == [barrier(2)], "the one that left holds no barrier up"


def due(rescaling: Rescaling) -> VnodeMapping | None:
    return rescaling.due


def quiet(made: BarrierScheduler) -> bool:
    return made.is_quiet


def over(rescaling: Rescaling) -> int:
    return rescaling.over


def ready(*names: str, number: int = 1) -> list[FetchProgress]:
    return [FetchProgress(name, ready=number) for name in names]


def test_the_barrier_is_due_when_the_new_ones_are_connected_and_all_owners_are_ready() -> None:
    rescaling = Rescaling(2)
    (connect,) = rescaling.ask(3)
    assert isinstance(connect, Connect) and set(connect.after.owners) == {"fetch-0", "fetch-1", "fetch-2"}
    assert rescaling.advance(100.0, ready("fetch-0", "fetch-1")) == [] and due(rescaling) is None
    (prepare,) = rescaling.on_connected(100.0)
    assert isinstance(prepare, PrepareMove) and not prepare.rest
    assert rescaling.advance(101.0, [*ready("fetch-0"), FetchProgress("fetch-1")]) == [] and due(rescaling) is None
    rescaling.advance(102.0, ready("fetch-0", "fetch-1"))
    assert due(rescaling) == connect.after
    rescaling.on_barrier(7)
    assert due(rescaling) is None and over(rescaling) == 0
    assert rescaling.on_epoch_over(6) == [] and rescaling.num_fetchers == 2
    assert rescaling.on_epoch_over(7) == []
    assert len(rescaling.mapping.owners) == 3 and over(rescaling) == 1


def test_who_does_not_get_ready_has_to_rest_and_is_not_waited_for_for_ever() -> None:
    rescaling = Rescaling(1)
    rescaling.ask(2)
    rescaling.on_connected(100.0)
    assert rescaling.wake_s() == 105.0
    (rest,) = rescaling.advance(105.0, [FetchProgress("fetch-0")])
    assert isinstance(rest, PrepareMove) and rest.rest
    assert rescaling.wake_s() == 110.0 and due(rescaling) is None
    assert rescaling.advance(110.0, [FetchProgress("fetch-0")]) == [] and due(rescaling) is not None


def test_who_leaves_is_ended_when_its_last_epoch_is_over_and_its_name_never_comes_back() -> None:
    rescaling = Rescaling(3)
    for wanted, gone, names in ((1, ("fetch-1", "fetch-2"), ("fetch-0",)), (2, (), ("fetch-0", "fetch-3"))):
        rescaling.ask(wanted)
        rescaling.on_connected(0.0)
        rescaling.advance(10.0, [])
        rescaling.on_barrier(wanted)
        assert [each.names for each in of(EndFetchers, rescaling.on_epoch_over(wanted))] == ([gone] if gone else [])
        assert rescaling.mapping.owners == names


def test_what_is_asked_while_vnodes_move_comes_after_and_the_last_word_counts() -> None:
    rescaling = Rescaling(1)
    rescaling.ask(4)
    assert rescaling.ask(8) == rescaling.ask(2) == [] and rescaling.asked == 3
    rescaling.on_connected(0.0)
    rescaling.advance(10.0, [])
    rescaling.on_barrier(5)
    (connect,) = rescaling.on_epoch_over(5)
    assert isinstance(connect, Connect) and (len(connect.after.owners), rescaling.over) == (2, 1)


def test_the_same_number_is_there_at_once() -> None:
    rescaling = Rescaling(2)
    assert rescaling.ask(2) == [] and rescaling.over == rescaling.asked == 1


def test_what_a_fetch_actor_has_done_counts_after_it_has_left_and_what_is_on_its_way_is_work() -> None:
    made = BarrierScheduler(
        settings=BarrierSettings(), max_files_waiting=100, committed=5, lists={"list-s": "s"}, fetchers=["a", "b"]
    )
    made.next_barrier(0.0, 10)
    made.on_progress(ListProgress("list-s", "s", sent=9), 1, 0.0)
    made.on_progress(FetchProgress("a", received=4, sources={"s": SourceProgress(done=4)}), 1, 0.0)
    last = FetchProgress("b", received=5, moved=-2, sources={"s": SourceProgress(done=3)})
    made.on_collect(CollectReport("b", 5, last_progress=last))
    made.on_progress(FetchProgress("b", received=1), 99, 0.0)
    assert quiet(made) is False, "two files have left one and have not come to the other"
    came = FetchProgress("a", received=4, moved=2, sources={"s": SourceProgress(done=6)})
    made.on_progress(came, 2, 0.0)
    assert quiet(made) is True
    gone = Vanished("s", "x", bytes(8))
    made.on_collect(CollectReport("b", 4, vanished=(gone,)))
    following = made.next_barrier(1.0, 11)
    assert following is not None and following.vanished == (gone,), "a report from before it has left comes late"
    assert sum(each.sources["s"].done for each in made.fetchers) == 9


def test_arrivals_are_complete_when_every_giver_has_given() -> None:
    arrivals = VnodeArrivals()
    arrivals.add(Handover("a", 7))
    arrivals.expect(7, frozenset({"a", "b"}))
    arrivals.hold(files("x"))
    assert (arrivals.take(), arrivals.next_held()) == ([], None)
    arrivals.add(Handover("b", 7))
    assert [each.giver for each in arrivals.take()] == ["a", "b"]
    assert (arrivals.next_held(), arrivals.next_held()) == (files("x"), None)
