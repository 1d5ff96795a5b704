"""The loop of a run that carries out the commands of other processes."""

from __future__ import annotations

from typing import Protocol

import structlog

from actors.protocol.barrier import FlowCommand
from actors.telemetry.logging import redact
from slackwater.commands.operations import Operation
from slackwater.running.commanded_run import CommandedRun
from slackwater.running.loop_thread import Turn
from state.errors import CommandRefusedError, SlackwaterError, StorageError
from state.ownership.command import Answer, Command
from state.ownership.command_inbox import PendingCommand

POLL_S = 2.0
_log = structlog.get_logger(actor="run")


class Inbox(Protocol):
    """The inbox of a root, as the loop uses it; see `state.ownership.command_inbox.CommandInbox`."""

    def pending(self) -> list[PendingCommand]: ...

    def answer(self, name: str, answer: Answer) -> None: ...


class OwnedByRun(Protocol):
    """The ownership of a root, as the loop uses it; see `state.ownership.owner.Ownership`."""

    @property
    def run_id(self) -> str: ...

    @property
    def lost(self) -> bool: ...

    def renew(self) -> None: ...


class Log(Protocol):
    """The log of the loop."""

    def debug(self, event: str, **values: object) -> object: ...

    def info(self, event: str, **values: object) -> object: ...

    def warning(self, event: str, **values: object) -> object: ...


class CommandLoop:
    """Polls the inbox, and carries out one command after the other.

    Only the owner carries out and answers: before both, `owner.json` is written on condition of its version.

    Args:
        log: gets the commands and their answers.
    """

    def __init__(self, inbox: Inbox, ownership: OwnedByRun, run: CommandedRun, log: Log = _log) -> None:
        self._inbox, self._ownership, self._run, self._log = inbox, ownership, run, log
        self._unsent: dict[str, Answer] = {}

    def turn(self) -> Turn:
        """Carries out the commands that wait, the oldest first."""
        try:
            for pending in self._inbox.pending():
                self._handle(pending)
        except StorageError as error:
            self._log.debug("the inbox cannot be reached; it is polled again", error=str(error))
        except Exception as error:
            # A poll that fails must not end the answers.
            self._log.warning("the inbox cannot be polled; it is polled again", error=redact(str(error)))
        return Turn.WAITS

    def _handle(self, pending: PendingCommand) -> None:
        if pending.id not in self._unsent:
            if not self._is_owner():
                return
            answer = self._unsent[pending.id] = self._answer_to(pending)
            self._log.info("command", id=pending.id, done=answer.done, answer=answer.text)
        if self._is_owner():
            self._inbox.answer(pending.id, self._unsent[pending.id])
            del self._unsent[pending.id]

    def _is_owner(self) -> bool:
        self._ownership.renew()
        return not self._ownership.lost

    def _answer_to(self, pending: PendingCommand) -> Answer:
        try:
            return self._carry_out(self._checked(pending))
        except SlackwaterError as error:
            return Answer(False, redact(str(error)))
        except Exception as error:
            # A failed command must not end the run.
            return Answer(False, redact(f"{type(error).__name__}: {error}"))

    def _checked(self, pending: PendingCommand) -> Command:
        if pending.command is None:
            raise CommandRefusedError(pending.error)
        if pending.run != self._ownership.run_id:
            raise CommandRefusedError(f"the command is for the run {pending.run}, which is over: ask again")
        return pending.command

    def _carry_out(self, command: Command) -> Answer:
        if isinstance(command, FlowCommand):
            return self._run.change_flow(command)
        if isinstance(command, Operation):
            return command.answer(command.on_run(self._run))
        raise CommandRefusedError(f"a run cannot carry out `{command.kind}`")
