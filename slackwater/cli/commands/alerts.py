"""The CLI command about alerts."""

from __future__ import annotations

from slackwater.cli.application import command
from slackwater.cli.options import Json, Root, StorageOptions, opened_store, storage_options
from slackwater.cli.terminal.output import Output

_COLUMNS = ("alert", "subject", "since", "value", "notice")


@command()
def alerts(root: Root, option: StorageOptions = None, json: Json = False) -> None:
    """Print the alerts whose condition holds, and the notices that are not delivered."""
    from slackwater.plugins.alerts.alert_states import read_states
    from state.location import Location

    opened_store(root, option)
    states = read_states(Location(root, storage_options(option)))
    waiting = {(each.state, each.event): each for each in states.notices}
    rows = [(state, waiting.pop((state, "begin"), None)) for state in states.active]
    rows += [(each.state, each) for each in waiting.values()]
    Output(json).rows(
        [
            {
                "alert": state.alert,
                "subject": state.subject,
                "since": state.since,
                "value": state.value,
                "notice": "delivered" if notice is None else f"{notice.event}: {notice.error or 'not delivered yet'}",
            }
            for state, notice in rows
        ],
        _COLUMNS,
    )
