"""Admission of files after an epoch that killed: the number falls to one, and grows again."""

from __future__ import annotations

from actors.coordination.admission import Admission
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key


def key(path: str, version: bytes = b"1") -> tuple[str, str, bytes]:
    return "s", path, version


def delta(queued: str = "", finished: str = "", version: bytes = b"1") -> Delta:
    made = DeltaBuilder()
    for path in queued:
        made.put("queue", encode_key(*key(path, version)), 0, source="s", path=path)
    for path in finished:
        made.delete("queue", encode_key(*key(path, version)), 0)
    return made.build()


def paths(admission: Admission) -> str:
    assert admission.admitted is not None
    return "".join(sorted({path for _, path, _ in admission.admitted}))


def test_without_a_limit_every_path_is_admitted() -> None:
    admission = Admission(None, [key("a")])
    assert admission.admitted is None
    assert not admission.on_committed(delta(queued="b"))


def test_twice_as_many_are_next_when_all_are_finished() -> None:
    admission = Admission(1, [key(path) for path in "abcdefgh"])
    assert paths(admission) == "a"
    assert admission.on_committed(delta(finished="a"))
    assert paths(admission) == "bc"
    assert not admission.on_committed(delta(finished="b")), "the others must be finished, too"
    assert admission.on_committed(delta(finished="c"))
    assert paths(admission) == "defg"


def test_a_file_that_is_queued_later_waits_for_its_turn() -> None:
    admission = Admission(1, [])
    assert paths(admission) == ""
    assert admission.on_committed(delta(queued="ab"))
    assert paths(admission) == "a"
    assert not admission.on_committed(delta(queued="c"))
    assert admission.on_committed(delta(finished="a"))
    assert paths(admission) == "bc"


def test_a_half_read_file_is_not_finished() -> None:
    admission = Admission(1, [key("a"), key("b")])
    assert not admission.on_committed(delta(queued="a"))
    assert paths(admission) == "a"


def test_a_path_is_admitted_with_all_of_its_versions() -> None:
    admission = Admission(1, [key("a"), key("a", b"2"), key("b")])
    assert not admission.on_committed(delta(finished="a"))
    assert admission.on_committed(delta(finished="a", version=b"2"))
    assert paths(admission) == "b"


def test_a_later_version_is_admitted_when_it_is_known_to_be_queued() -> None:
    admission = Admission(1, [key("a")])
    assert admission.admitted == frozenset([key("a")])
    assert admission.on_committed(delta(queued="a", version=b"2"))
    assert admission.admitted == frozenset([key("a"), key("a", b"2")]) == admission.suspects
    assert not admission.on_committed(delta(finished="a"))
    assert admission.admitted == frozenset([key("a", b"2")])


def test_many_proven_files_lift_the_limit() -> None:
    admission = Admission(300, [key(path) for path in "ab"])
    assert admission.on_committed(delta(finished="ab"))
    assert admission.admitted is None
