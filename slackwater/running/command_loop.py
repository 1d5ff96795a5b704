"""Carries out what other processes ask of a run through the store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from actors.protocol.barrier import Throttle
from actors.telemetry.logging import redact
from slackwater.running.requests import RunRequests
from state.errors import CommandRefusedError, SlackwaterError, StorageError
from state.ownership.command import (
    ClearQuarantineCommand,
    Command,
    ForgetCommand,
    PauseCommand,
    ReingestCommand,
    RescaleCommand,
    ResumeCommand,
    RetryCommand,
    StopCommand,
    TagCommand,
    ThrottleCommand,
    VacuumCommand,
)
from state.ownership.command_inbox import Answer, Asked, CommandInbox
from state.ownership.owner import Ownership

if TYPE_CHECKING:
    from slackwater.running.corrections import Corrections
from slackwater.commands.answers import _fetchers, _limits, _number, cleared, retried, tagged, vacuumed

POLL_S = 2.0
_log = structlog.get_logger(actor="run")


class CommandLoop:
    """A thread that looks into the inbox until the run is over, and does one command after the other.

    Nothing is done and nothing is answered by a process that is not the owner any more: `owner.json` is written on its
    version before both.

    Args:
        inbox: of the root.
        ownership: of the run.
        requests, corrections: of the run.
        failure: what ended the run, None if it has stopped gracefully.
        poll_s: seconds between two looks.
    """

    def __init__(
        self,
        inbox: CommandInbox,
        ownership: Ownership,
        requests: RunRequests,
        corrections: Corrections,
        failure: Callable[[], Exception | None],
        *,
        poll_s: float = POLL_S,
    ) -> None:
        self._inbox, self._ownership, self._requests = inbox, ownership, requests
        self._corrections, self._failure, self._poll_s = corrections, failure, poll_s
        self._unsent: dict[str, Answer] = {}
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Returns when the last answer is written; the run must be over."""
        self._thread.join()

    def _run(self) -> None:
        while not self._requests.wait_over(self._poll_s):
            try:
                for asked in self._inbox.pending():
                    self._meet(asked)
            except StorageError as error:
                _log.debug("the inbox is looked into later", error=str(error))

    def _meet(self, asked: Asked) -> None:
        if asked.id not in self._unsent:
            if not self._is_ours():
                return
            answer = self._unsent[asked.id] = self._outcome(asked)
            _log.info("command", id=asked.id, done=answer.done, answer=answer.text)
        if self._is_ours():
            self._inbox.answer(asked.id, self._unsent[asked.id])
            del self._unsent[asked.id]

    def _outcome(self, asked: Asked) -> Answer:
        try:
            return self._do(self._checked(asked))
        except SlackwaterError as error:
            return Answer(False, redact(str(error)))
        except Exception as error:
            # A command must not end the run that it is asked of.
            return Answer(False, redact(f"{type(error).__name__}: {error}"))

    def _is_ours(self) -> bool:
        self._ownership.renew()
        return not self._ownership.lost

    def _checked(self, asked: Asked) -> Command:
        if asked.command is None:
            raise CommandRefusedError(asked.error)
        if asked.run != self._ownership.run_id:
            raise CommandRefusedError(f"this was asked of the run {asked.run}, which is over: ask again")
        return asked.command

    def _do(self, command: Command) -> Answer:
        requests = self._requests
        if isinstance(command, PauseCommand):
            requests.pause()
            return self._settled("paused")
        if isinstance(command, ResumeCommand):
            requests.resume()
            return self._settled("goes on")
        if isinstance(command, ThrottleCommand):
            requests.throttle(Throttle(command.files_per_second, command.bytes_per_second, command.rows_per_second))
            return self._settled(_limits(command))
        if isinstance(command, RescaleCommand):
            requests.rescale(command.fewest, command.most)
            return Answer(True, _fetchers(command))
        if isinstance(command, StopCommand):
            return self._stop()
        if isinstance(command, RetryCommand):
            return retried(requests.retry(command.source, command.file))
        if isinstance(command, ReingestCommand):
            files = self._corrections.reingest(command.file, command.source)
            return Answer(True, f"{_number(files)} read again", {"files": files})
        if isinstance(command, ForgetCommand):
            files = self._corrections.forget(command.file, command.source)
            return Answer(True, f"{_number(files)} forgotten", {"files": files})
        if isinstance(command, ClearQuarantineCommand):
            return cleared(requests.running_attempt().client.clear_quarantine(command.source, command.epoch))
        if isinstance(command, TagCommand):
            return self._tag(command)
        return self._vacuum(command)

    def _settled(self, text: str) -> Answer:
        return Answer(True, text if self._requests.settle() else f"{text}, when the run has started or recovered")

    def _stop(self) -> Answer:
        self._requests.stop()
        self._requests.wait_over()
        failure = self._failure()
        if failure is not None:
            raise CommandRefusedError(f"the run had failed before it could stop: {failure}")
        return Answer(True, "stopped after a last epoch")

    def _tag(self, command: TagCommand) -> Answer:
        client = self._requests.running_attempt().client
        if command.epoch is None:
            client.delete_tag(command.name)
        else:
            client.put_tag(command.name, command.epoch)
        return tagged(command)

    def _vacuum(self, command: VacuumCommand) -> Answer:
        if command != VacuumCommand():
            raise CommandRefusedError("a pipeline that runs keeps what its settings say: leave out what to keep")
        return vacuumed(self._requests.running_attempt().client.vacuum())
