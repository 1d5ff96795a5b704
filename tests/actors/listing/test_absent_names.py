"""The store is asked for names that are absent, for all of them at once, and again when it may know more."""

from __future__ import annotations

from actors.files import GoneFile
from actors.listing.instructions import FindGone
from actors.listing.instructions import ListInstruction as Instruction
from actors.listing.missing_files import GoneFound, MissingNames
from tests.actors.flow import of

A, B = b"a" * 16, b"b" * 16
V = b"version1"
GONE = (GoneFile("s", "a", V),)


def asked(instructions: list[Instruction]) -> list[set[bytes]]:
    return [set(each.absent) for each in of(FindGone, instructions)]


def test_without_a_path_a_name_waits_for_the_next_listing() -> None:
    names = MissingNames("s")
    names.add(A, V, 1)
    assert asked(names.ask_for_paths()) == []
    assert asked(names.ask(1, 1)) == [{A}]


def test_with_a_path_a_name_is_asked_for_at_once_and_then_when_more_is_committed() -> None:
    names = MissingNames("s")
    names.add(A, V, 1, "a")
    names.add(B, V, 1)
    assert asked(names.ask_for_paths()) == [{A, B}], "the others with it"
    assert asked(names.ask_for_paths()) == asked(names.ask(1, 1)) == [], "not while the answer is out"
    assert names.on_found(GoneFound(1)) == ((), [], [])
    assert asked(names.ask_for_paths()) == [], "in vain until something is committed"
    names.on_committed()
    assert asked(names.ask_for_paths()) == [{A, B}]
    assert names.on_found(GoneFound(2, {A: GONE})) == (GONE, [A], ["a"])
    names.on_committed()
    assert asked(names.ask_for_paths()) == [], "nobody waits for the other one"
    assert names


def test_a_commit_while_the_answer_is_out_makes_it_ask_once_more() -> None:
    names = MissingNames("s")
    names.add(A, V, 1, "a")
    names.ask_for_paths()
    names.on_committed()
    names.on_found(GoneFound(1))
    assert asked(names.ask_for_paths()) == [{A}]


def test_a_store_older_than_what_was_handed_on_last_is_not_believed() -> None:
    names = MissingNames("s")
    names.add(A, V, 5, "a")
    names.ask_for_paths()
    assert names.on_found(GoneFound(4, {A: GONE})) == ((), [], [])
    names.on_committed()
    names.ask_for_paths()
    assert names.on_found(GoneFound(5, {A: GONE})) == (GONE, [A], ["a"])
    assert not names


def test_what_is_back_is_not_told_and_its_path_is_given_back_once() -> None:
    names = MissingNames("s")
    names.add(A, V, 1, "a")
    names.add(B, V, 1)
    names.ask_for_paths()
    assert names.discard([A, B]) == ["a"]
    assert names.discard([A]) == []
    assert names.on_found(GoneFound(9, {A: GONE})) == ((), [], [])
