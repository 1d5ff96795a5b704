"""A command from the process that asks to the owner of the root; without an owner, this process carries it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.commands.operations import RootOperation
from state.clock import Clock
from state.errors import CommandRefusedError, CommandUnansweredError
from state.location import Location
from state.ownership.command import Answer, Command
from state.ownership.command_inbox import CommandInbox
from state.ownership.owner import Owner, read_owner

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

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
    """Has a command carried out by the run that owns the root, or else by this process.

    Args:
        root: the root of a pipeline.
        clock: paces the waiting.
        random: distinguishes commands of one millisecond.
        timeout_s: seconds to wait for the owner's answer.
        takeover: take the root over from a living owner instead of asking it.

    Returns:
        The answer of a command that is done.

    Raises:
        CommandRefusedError: the owner refuses the command, or nothing runs and the command needs a run.
        CommandUnansweredError: the owner lives, and has not answered in time.
        StoreNotFoundError: no pipeline has written there.
        OwnedError: another process took the root meanwhile.
        StorageError: the root cannot be read or written.
    """
    deadline_s = clock.monotonic() + timeout_s
    silent: Owner | None = None
    while True:
        owner = read_owner(root)
        if takeover or owner is None or owner.is_gone() or owner == silent:
            return _carry_out_alone(root, command, clock, takeover)
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
    """The owner's answer; or the last state of the owner, if it is gone, replaced or silent."""
    inbox = CommandInbox(root, clock)
    name = inbox.ask(command, owner.run_id, random)
    answer: Answer | None = None
    heard_s = clock.monotonic()
    try:
        while True:
            now = read_owner(root)  # before the answer: an owner answers first, and releases the root then
            answer = inbox.answer_to(name)
            if answer is not None:
                return answer
            if now is None or now.run_id != owner.run_id or now.is_gone():
                return owner
            if now != owner:
                owner, heard_s = now, clock.monotonic()
            if clock.monotonic() - heard_s >= _SILENT_S:
                return owner
            if clock.monotonic() >= deadline_s:
                raise CommandUnansweredError(
                    f"the owner of {root}, pid {owner.pid} on {owner.host} ({owner.phase}), has not answered in time: "
                    f"`{command.kind}` is withdrawn, unless the owner is carrying it out; look at `status`, and ask "
                    "again with a longer --timeout"
                )
            clock.sleep(_POLL_S)
    finally:
        if answer is None:
            inbox.withdraw(name)


def _carry_out_alone(root: Location, command: Command, clock: Clock, takeover: bool) -> Answer:
    if not isinstance(command, RootOperation):
        raise CommandRefusedError(f"nothing runs at {root}: {command.why_run}")
    # Lance is imported only by the process that carries a command out: `--help` must not wait for it.
    from slackwater.commands.maintenance import run_as_owner

    result = run_as_owner(root.url, root.storage_options, command.on_root, takeover=takeover, clock=clock)
    return command.answer_on_root(result)
