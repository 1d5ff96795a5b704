"""A command declares its arguments by its fields; the class is all that it needs."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from state.errors import UsageError
from state.ownership.command import Command, Epoch, command_from_json


@dataclass(frozen=True, kw_only=True)
class Everything(Command, kind="test_everything"):
    """An argument of each type."""

    text: str
    number: float = 1.0
    whole: int | None = None
    epoch: Epoch | None


FULL = Everything(text="a", number=0.5, whole=7, epoch=2**56)


@pytest.mark.parametrize("command", [FULL, Everything(text="a", epoch=None)], ids=repr)
def test_a_command_comes_back_from_json(command: Command) -> None:
    assert command_from_json(json.loads(json.dumps(command.to_json()))) == command


def test_arguments_that_have_their_default_are_left_out_and_an_epoch_is_text() -> None:
    assert FULL.to_json() == {
        "kind": "test_everything", "text": "a", "number": 0.5, "whole": 7, "epoch": "72057594037927936",
    }  # fmt: skip
    assert Everything(text="a", epoch=None).to_json() == {"kind": "test_everything", "text": "a", "epoch": None}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"text": None}, "text is None; give text"),
        ({"number": None}, "number is None; give a number"),
        ({"number": "5"}, "number is '5'; give a number"),
        ({"whole": 1.5}, "whole is 1.5; give a whole number"),
        ({"whole": True}, "whole is True; give a whole number"),
        ({"epoch": 7}, "epoch is 7; give an epoch as text"),
        ({"text": "x" * 40, "other": 1}, "'other' is not an argument; its arguments are text, number, whole, epoch"),
    ],
    ids=str,
)
def test_an_argument_that_is_not_valid_is_named(changes: dict[str, object], error: str) -> None:
    with pytest.raises(UsageError) as refused:
        command_from_json({**FULL.to_json(), **changes})
    assert str(refused.value) == f"test_everything: {error}"


def test_missing_arguments_are_named() -> None:
    with pytest.raises(UsageError, match="test_everything: text, epoch is missing"):
        command_from_json({"kind": "test_everything"})


def test_two_commands_of_one_kind_are_an_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="Everything and Twice have the kind 'test_everything'"):

        class Twice(Command, kind="test_everything"):
            pass
