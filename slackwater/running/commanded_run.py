"""A run as commands see it: each call returns when the operation is committed."""

from __future__ import annotations

from collections.abc import Callable

from actors.protocol.barrier import FlowCommand
from slackwater.running.corrections import Corrections
from slackwater.running.declared_views import DeclaredViews
from slackwater.running.requests import OwnerClient, RunRequests
from state.errors import CommandRefusedError
from state.ownership.command import Answer
from state.upkeep.vacuum import Vacuumed


class CommandedRun:
    """The operations of one run: `RunOperations` of `slackwater.commands.operations`, and changes of the flow.

    Args:
        requests, corrections, declared: of the run.
        failure: returns the error that ended the run; None if it has stopped gracefully.
    """

    def __init__(
        self,
        requests: RunRequests,
        corrections: Corrections,
        declared: DeclaredViews,
        failure: Callable[[], Exception | None],
    ) -> None:
        self._requests, self._failure, self._needs = requests, failure, declared.needs
        self.rescale, self.retry, self.allow_removals = requests.rescale, requests.retry, requests.allow_removals
        self.forget, self.reingest, self.read_table = corrections.forget, corrections.reingest, corrections.read_table
        self.retry_view, self.release = declared.retry, declared.release

    def change_flow(self, command: FlowCommand) -> Answer:
        """Puts a mutation on the next barrier; returns when it is in force, or will be with the next attempt."""
        self._requests.change_flow(command)
        when = "" if self._requests.settle() else ", when the run has started or recovered"
        return Answer(True, command.outcome + when)

    def stop(self) -> None:
        self._requests.stop()
        self._requests.wait_over()
        failure = self._failure()
        if failure is not None:
            raise CommandRefusedError(f"the run failed before it could stop: {failure}")

    def clear_quarantine(self, source: str | None, epoch: int) -> int:
        return self._client.clear_quarantine(source, epoch)

    def put_tag(self, name: str, epoch: int) -> None:
        # A branch keeps files from deletion: without a pause, a look that began before it would delete them.
        with self._needs.excluding():
            self._client.put_tag(name, epoch)

    def delete_tag(self, name: str) -> None:
        self._client.delete_tag(name)

    def vacuum(self) -> Vacuumed:
        return self._client.vacuum()

    @property
    def _client(self) -> OwnerClient:
        return self._requests.running_attempt().client
