"""Admission of files after an epoch that killed: the number falls to one, and grows again."""

from __future__ import annotations

from actors.coordination.admission import Admission
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key


def key(path: str, version: bytes = b"1") -> tuple[str, str, bytes]:
    return "s", path, version


def delta(queued: str = "", finished: str = "", version: bytes = b"1", rows: int = 0) -> Delta:
    made = DeltaBuilder()
    for path in queued:
        made.put("queue", encode_key(*key(path, version)), 0, source="s", path=path, row_offset=rows)
    for path in finished:
        made.delete("queue", encode_key(*key(path, version)), 0)
    return made.build()


def waiting(*files: tuple[str, str, bytes]) -> dict[tuple[str, str, bytes], int]:
    return dict.fromkeys(files, 0)


def paths(admission: Admission) -> str:
    assert admission.admitted is not None
    assert admission.admitted == admission.suspects.keys()
    return "".join(sorted({path for _, path, _ in admission.admitted}))


def test_without_a_limit_every_path_is_admitted() -> None:
    admission = Admission(None, waiting(key("a")))
    assert admission.admitted is None
    assert not admission.on_committed(delta(queued="b"))


def test_twice_as_many_are_next_when_all_are_finished() -> None:
    admission = Admission(1, waiting(*map(key, "abcdefgh")))
    assert paths(admission) == "a"
    assert admission.on_committed(delta(finished="a"))
    assert paths(admission) == "bc"
    assert not admission.on_committed(delta(finished="b")), "the others must be finished, too"
    assert admission.on_committed(delta(finished="c"))
    assert paths(admission) == "defg"


def test_a_file_that_is_queued_later_waits_for_its_turn() -> None:
    admission = Admission(1, {})
    assert paths(admission) == ""
    assert admission.on_committed(delta(queued="ab"))
    assert paths(admission) == "a"
    assert not admission.on_committed(delta(queued="c"))
    assert admission.on_committed(delta(finished="a"))
    assert paths(admission) == "bc"


def test_a_half_read_file_without_further_rows_is_not_proven() -> None:
    admission = Admission(1, waiting(*map(key, "ab")))
    assert not admission.on_committed(delta(queued="a"))
    assert paths(admission) == "a"


def test_a_path_is_admitted_with_all_of_its_versions() -> None:
    admission = Admission(1, waiting(key("a"), key("a", b"2"), key("b")))
    assert not admission.on_committed(delta(finished="a"))
    assert admission.on_committed(delta(finished="a", version=b"2"))
    assert paths(admission) == "b"


def test_a_later_version_is_admitted_when_it_is_known_to_be_queued() -> None:
    admission = Admission(1, waiting(key("a")))
    assert admission.admitted == frozenset([key("a")])
    assert admission.on_committed(delta(queued="a", version=b"2"))
    assert admission.admitted == frozenset([key("a"), key("a", b"2")]) == admission.suspects.keys()
    assert not admission.on_committed(delta(finished="a"))
    assert admission.admitted == frozenset([key("a", b"2")])


def test_many_proven_files_lift_the_limit() -> None:
    admission = Admission(300, waiting(*map(key, "ab")))
    assert admission.on_committed(delta(finished="ab"))
    assert admission.admitted is None


def test_rows_of_every_admitted_file_admit_twice_as_many_beside_them() -> None:
    admission = Admission(1, {key("a"): 7} | waiting(*map(key, "bcd")))
    assert admission.suspects == {key("a"): 7}
    assert not admission.on_committed(delta(queued="a", rows=7))
    assert admission.on_committed(delta(queued="a", rows=9))
    assert paths(admission) == "ab" and admission.suspects[key("a")] == 9
    assert not admission.on_committed(delta(queued="a", rows=12)), "the other one must be read, too"
    assert admission.on_committed(delta(queued="b", rows=1))
    assert paths(admission) == "abcd"


def test_a_file_that_is_admitted_stays_so_when_the_files_of_another_source_may_be_read() -> None:
    other = ("t", "z", b"1")
    admission = Admission(1, waiting(other, *map(key, "ab")), frozenset("t"))
    assert paths(admission) == "a"
    admission.close(frozenset())
    assert paths(admission) == "a"
    assert admission.on_committed(delta(finished="a"))
    assert paths(admission) == "bz"
