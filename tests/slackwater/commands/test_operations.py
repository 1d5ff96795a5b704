"""Tests of the wire format of commands: unknown kinds and arguments are refused by name."""

from __future__ import annotations

import json

import pytest

from actors.protocol.barrier import Pause, Resume, Throttle
from slackwater.commands.operations import (
    AllowRemovalsCommand,
    ClearQuarantineCommand,
    ForgetCommand,
    ReingestCommand,
    RescaleCommand,
    RetryCommand,
    StopCommand,
    TagCommand,
    VacuumCommand,
)
from state.errors import UsageError
from state.ownership.command import Command, command_from_json

EPOCH = 117_000_000_000_000_001


@pytest.mark.parametrize(
    "command",
    [
        Pause(),
        Resume(),
        StopCommand(),
        Throttle(),
        Throttle(files_per_second=0.5, bytes_per_second=1e6),
        RescaleCommand(fewest=1, most=8),
        RetryCommand(),
        AllowRemovalsCommand(),
        AllowRemovalsCommand(source="s"),
        RetryCommand(source="s", file="a/b.csv"),
        ClearQuarantineCommand(epoch=EPOCH),
        ClearQuarantineCommand(epoch=EPOCH, source="s"),
        TagCommand(name="audit", epoch=EPOCH),
        TagCommand(name="audit", epoch=None),
        ReingestCommand(file="day=1/*.csv"),
        ForgetCommand(source="s", file="a/b.csv"),
        VacuumCommand(),
        VacuumCommand(keep_s=0.0, keep_epochs=1),
    ],
    ids=repr,
)
def test_every_command_comes_back_as_it_was_written(command: Command) -> None:
    text = json.dumps(command.to_json())
    assert command_from_json(json.loads(text)) == command
    assert json.loads(text)["kind"] == command.kind


def test_an_epoch_is_text_since_it_does_not_fit_every_readers_numbers() -> None:
    assert TagCommand(name="audit", epoch=EPOCH).to_json()["epoch"] == str(EPOCH)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "run", "code": "import os"}, "'run' is not a known command"),
        ({"kind": "__init__"}, "is not a known command"),
        ({"kind": ["pause"]}, "is not a known command"),
        ({}, "None is not a known command"),
        (None, "is not a known command"),
        (["pause"], "is not a known command"),
        ({"kind": "pause", "for_s": 3}, "pause: 'for_s' is not an argument; it has no arguments"),
        ({"kind": "throttle", "files_per_second": "5"}, "throttle: files_per_second is '5'; give a number"),
        ({"kind": "throttle", "files_per_second": True}, "give a number"),
        ({"kind": "throttle", "files_per_second": 0}, "above zero"),
        ({"kind": "throttle", "bytes_per_second": -1.5}, "above zero"),
        ({"kind": "throttle", "bytes_per_second": float("nan")}, "above zero"),
        ({"kind": "throttle", "bytes_per_second": float("inf")}, "above zero"),
        ({"kind": "rescale", "fewest": 0, "most": 4}, "from 1 to 256"),
        ({"kind": "rescale", "fewest": 4, "most": 2}, "the fewest and the most"),
        ({"kind": "rescale", "fewest": 1.5, "most": 2}, "rescale: fewest is 1.5; give a whole number"),
        ({"kind": "rescale", "fewest": 1}, "rescale: most is missing"),
        ({"kind": "retry", "file": ""}, "retry: file is ''; give text"),
        ({"kind": "retry", "source": 7}, "retry: source is 7; give text"),
        ({"kind": "clear_quarantine", "source": "s"}, "clear_quarantine: epoch is missing"),
        ({"kind": "clear_quarantine", "epoch": None}, "clear_quarantine: epoch is None; give an epoch as text"),
        ({"kind": "clear_quarantine", "epoch": "7", "source": ""}, "give text"),
        ({"kind": "tag", "epoch": "7"}, "tag: name is missing"),
        ({"kind": "tag", "name": "audit"}, "tag: epoch is missing"),
        ({"kind": "tag", "name": "audit", "epoch": 7}, "give an epoch as text"),
        ({"kind": "tag", "name": "audit", "epoch": "7; DROP"}, "give an epoch as text"),
        ({"kind": "tag", "name": "audit", "epoch": "9" * 400}, "give an epoch as text"),
        ({"kind": "tag", "name": "../x", "epoch": "7"}, "is not a valid tag name"),
        ({"kind": "vacuum", "keep_epochs": 0}, "at least the last epoch"),
        ({"kind": "vacuum", "keep_epochs": 1.5}, "give a whole number"),
        ({"kind": "vacuum", "keep_s": -1}, "not below zero"),
        ({"kind": "vacuum", "keep_s": float("nan")}, "not below zero"),
    ],
    ids=str,
)
def test_what_is_no_command_is_refused_with_what_is_wrong(values: object, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace(".", r"\.")) as refused:
        command_from_json(values)
    assert len(str(refused.value)) < 300


def test_the_secrets_of_a_url_are_not_stored() -> None:
    command = RetryCommand(file="https://user:hunter2@host/raw/a.csv?X-Amz-Signature=hunter3")
    assert command.file == "https://host/raw/a.csv"
    assert "hunter" not in json.dumps(command.to_json())
