"""Asks the owner of a root for something; what can be done without a run is done here when nobody owns it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.commands.answers import cleared, retried, tagged, vacuumed
from slackwater.commands.maintenance import run_as_owner, vacuum
from slackwater.commands.retry import requeue
from state.clock import Clock
from state.errors import CommandRefusedError, CommandUnansweredError
from state.location import Location
from state.ownership.command import (
    ClearQuarantineCommand,
    Command,
    ForgetCommand,
    ReingestCommand,
    RetryCommand,
    TagCommand,
    VacuumCommand,
    kind_of,
)
from state.ownership.command_inbox import Answer, CommandInbox
from state.ownership.owner import Owner, read_owner
from state.upkeep.quarantine import clear_quarantine
from state.upkeep.retention import RetentionSettings
from state.upkeep.tags import delete_tag, put_tag

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from state.lance.lance_root import LanceRoot
    from state.store.store import StateStore

TIMEOUT_S = 60.0
_POLL_S = 0.5
_SILENT_S = 20.0


def ask(
    root: Location,
    command: Command,
    *,
    clock: Clock,
    random: Random,
    timeout_s: float = TIMEOUT_S,
    takeover: bool = False,
) -> Answer:
    """Has a command done by the run that owns the root, or else by this process.

    Args:
        root: where a pipeline runs, or has run.
        command: what is asked.
        clock: paces the waiting.
        random: tells commands of one moment apart.
        timeout_s: seconds to wait for the owner's answer.
        takeover: do not ask the owner; take the root from it.

    Returns:
        What was done.

    Raises:
        CommandRefusedError: the owner refuses it, or nothing runs that could do it.
        CommandUnansweredError: the owner lives, and has not answered in time.
        StoreNotFoundError: no pipeline has written there.
        OwnedError: another process took the root meanwhile.
        StorageError: the root cannot be read or written.
    """
    deadline_s = clock.monotonic() + timeout_s
    silent: Owner | None = None
    while True:
        owner = read_owner(root)
        if takeover or owner is None or _is_gone(owner) or owner == silent:
            return _do_alone(root, command, clock, takeover)
        outcome = _ask_owner(root, command, owner, clock, random, deadline_s)
        if isinstance(outcome, Owner):
            silent = outcome
        elif outcome.done:
            return outcome
        else:
            raise CommandRefusedError(outcome.text)


def _ask_owner(
    root: Location, command: Command, owner: Owner, clock: Clock, random: Random, deadline_s: float
) -> Answer | Owner:
    """The owner's answer; or the owner as it was last heard of, if it is gone, replaced or silent."""
    inbox = CommandInbox(root, clock)
    name = inbox.ask(command, owner.run_id, random)
    answer: Answer | None = None
    heard_s = clock.monotonic()
    try:
        while True:
            now = read_owner(root)  # before the answer: an owner answers first and lets go then
            answer = inbox.answer_to(name)
            if answer is not None:
                return answer
            if now is None or now.run_id != owner.run_id or _is_gone(now):
                return owner
            if now != owner:
                owner, heard_s = now, clock.monotonic()
            if clock.monotonic() - heard_s >= _SILENT_S:
                return owner
            if clock.monotonic() >= deadline_s:
                raise CommandUnansweredError(
                    f"the owner of {root}, pid {owner.pid} on {owner.host} ({owner.phase}), has not answered in time: "
                    f"`{kind_of(command)}` is withdrawn, unless it is being done just now; look at `status`, and ask "
                    "again with more time"
                )
            clock.sleep(_POLL_S)
    finally:
        if answer is None:
            inbox.withdraw(name)


def _is_gone(owner: Owner) -> bool:
    return owner.released or owner.is_dead()


def _do_alone(root: Location, command: Command, clock: Clock, takeover: bool) -> Answer:
    """Does what needs no run, as the owner for a moment."""

    def action(store: StateStore, place: LanceRoot) -> Answer:
        if isinstance(command, RetryCommand):
            return retried(requeue(store, place.clock, command.source, command.file))
        if isinstance(command, ClearQuarantineCommand):
            return cleared(clear_quarantine(store, command.source, command.epoch))
        if isinstance(command, TagCommand):
            if command.epoch is None:
                delete_tag(store, command.name)
            else:
                put_tag(store, command.name, command.epoch)
            return tagged(command)
        assert isinstance(command, VacuumCommand)
        retention = RetentionSettings()
        if command.keep_s is not None:
            retention = replace(retention, keep_s=command.keep_s)
        if command.keep_epochs is not None:
            retention = replace(retention, keep_epochs=command.keep_epochs)
        return vacuumed(vacuum(store, place, retention))

    if not isinstance(command, (RetryCommand, ClearQuarantineCommand, TagCommand, VacuumCommand)):
        if isinstance(command, (ReingestCommand, ForgetCommand)):
            raise CommandRefusedError(
                f"nothing runs at {root}: `{kind_of(command)}` needs a run, which computes the views; start the "
                "pipeline, and ask again"
            )
        raise CommandRefusedError(f"nothing runs at {root}: there is nothing to {kind_of(command)}")
    return run_as_owner(root.url, root.storage_options, action, takeover=takeover, clock=clock)
