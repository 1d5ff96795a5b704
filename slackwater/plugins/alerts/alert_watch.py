"""The watch of a run: looks at its status about once a second, and delivers the notices of its alerts."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from actors.telemetry.text import first_line
from slackwater.extensions.companion import Companion
from slackwater.plugins.alerts.alert import Alert
from slackwater.plugins.alerts.alert_states import NAME, AlertStates, Notice, states_file
from slackwater.plugins.alerts.condition import Facts
from slackwater.plugins.alerts.delivery import DeliveryError, deliver, document
from slackwater.reading.store import Store
from slackwater.reading.watching.stored_status import stored_status
from slackwater.status.run_status import RunStatus, SourceStatus
from state.clock import Clock
from state.errors import StorageError
from state.location import Location
from state.ownership.conditional_file import FileChangedError

_OVER = ("stopped", "failed")
_log = structlog.get_logger(actor="alerts")


class AlertWatch(Companion):
    """Watches one run; called by one thread at a time.

    Args:
        alerts: the alerts of the pipeline.
        root: its root; `alerts.json` there is written by the owner of the root alone.
        clock: gives the times of notices.

    Raises:
        StorageError: the root cannot be read.
    """

    name = "alerts"
    ends_first = True  # a notice that the run has failed does not wait for the end of Spark

    def __init__(self, alerts: Sequence[Alert], pipeline: str, root: Location, clock: Clock) -> None:
        self._alerts = {each.name: each for each in alerts}
        self._pipeline, self._root, self._clock = pipeline, root, clock
        self._file = states_file(root)
        self._version = None if (found := self._file.read()) is None else found.version
        self._states = AlertStates()
        self._store: Store | None = None
        self._ledger: RunStatus | None = None
        self._has_error = False
        if found is not None:
            try:
                self._states = AlertStates.of_json(found.content).declared(self._alerts)
            except ValueError:
                _log.warning("alerts begin again", error=f"{NAME} is torn")

    @property
    def states(self) -> AlertStates:
        """The states, a moment ago."""
        return self._states

    def look(self, run: RunStatus) -> bool:
        """Judges every condition, and tries to deliver the notices that are due.

        A root that cannot be read or written is logged once, and is tried again with the next look.

        Args:
            run: the status of the run.

        Returns:
            False if the run is over, or another run writes the alerts of this root.
        """
        try:
            self._judge(run)
            self._deliver()
            self._has_error = False
        except StorageError as error:
            if not self._has_error:
                _log.warning("alerts wait", error=first_line(error))
            self._has_error = True
        except FileChangedError:
            return False
        return run.phase not in _OVER

    def end(self, run: RunStatus, failure: Exception | None) -> None:
        """Takes a last look, which sees the failure of the run in its status, and delivers its notices."""
        self.look(run)

    def _judge(self, run: RunStatus) -> None:
        now = self._clock.now()
        self._read_ledger(run.epoch)
        states = self._states
        if self._ledger is not None:
            states = states.counted({name: _files(each) for name, each in self._ledger.sources.items()}, now)
        facts = Facts(run, self._ledger, {name: each.at for name, each in states.arrivals.items()}, now)
        for name, alert in self._alerts.items():
            holding = alert.condition.holding(facts)
            if holding is not None:
                states = states.found(name, holding, now)
        self._record(states)

    def _read_ledger(self, epoch: int) -> None:
        """Reads the counts of the ledger again if there is a later epoch."""
        if epoch == 0 or (self._ledger is not None and self._ledger.epoch >= epoch):
            return
        if self._store is None:
            self._store = Store(self._root, self._clock)
        self._ledger = stored_status(self._store)

    def _deliver(self) -> None:
        for notice in self._states.due(self._clock.now()):
            alert = self._alerts[notice.state.alert]
            try:
                deliver(alert, document(alert, notice, self._pipeline, str(self._root)))
            except DeliveryError as error:
                self._note_failure(notice, str(error))
            else:
                self._record(self._states.delivered(notice))

    def _note_failure(self, notice: Notice, error: str) -> None:
        states = self._states.failed(notice, error, self._clock.now())
        if len(states.notices) < len(self._states.notices):
            _log.warning("alert given up", alert=notice.state.alert, error=error)
        elif notice.tries == 0:
            _log.warning("alert is tried again for an hour", alert=notice.state.alert, error=error)
        self._record(states)

    def _record(self, states: AlertStates) -> None:
        if states == self._states:
            return
        self._file.replace(states.to_json(), self._version)
        found = self._file.read()
        self._version = None if found is None else found.version
        self._states = states


def _files(source: SourceStatus) -> int:
    return source.waiting + source.reading + source.done + source.quarantined + source.vanished
