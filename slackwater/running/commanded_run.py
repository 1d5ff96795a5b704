"""A run as commands see it: each call returns when the operation is committed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from actors.protocol.barrier import FlowCommand
from slackwater.running.corrections import Corrections
from slackwater.running.declared_views import DeclaredViews
from slackwater.running.requests import OwnerClient, RunRequests
from state.errors import CommandRefusedError
from state.ownership.command import Answer
from state.upkeep.tags import put_tag


class CommandedRun:
    """The parts of one run that carry out operations: `OperatedRun` of `slackwater.commands.operations`.

    Args:
        failure: returns the error that ended the run; None if it has stopped gracefully.
    """

    def __init__(
        self,
        requests: RunRequests,
        corrections: Corrections,
        declared: DeclaredViews,
        failure: Callable[[], Exception | None],
    ) -> None:
        self.requests, self.corrections, self.declared = requests, corrections, declared
        self._failure = failure

    @property
    def owner(self) -> OwnerClient:
        """The work on the root by the coordinator of an attempt that runs."""
        return self.requests.running_attempt().client

    def change_flow(self, command: FlowCommand) -> Answer:
        """Puts a mutation on the next barrier; returns when it is in force, or will be with the next attempt."""
        self.requests.change_flow(command)
        when = "" if self.requests.settle() else ", when the run has started or recovered"
        return Answer(True, command.outcome + when)

    def stop(self) -> None:
        """Ends the run after a last epoch."""
        self.requests.stop()
        self.requests.wait_over()
        failure = self._failure()
        if failure is not None:
            raise CommandRefusedError(f"the run failed before it could stop: {failure}")

    def put_tag(self, name: str, epoch: int) -> None:
        # A branch keeps files from deletion: without a pause, a look that began before it would delete them.
        with self.declared.needs.excluding():
            self.owner.change(partial(put_tag, name=name, epoch=epoch))
