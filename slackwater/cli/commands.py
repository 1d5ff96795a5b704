"""`slackwater pause`, `resume`, `stop`, `throttle` and `retry`: what is asked of whoever owns a root."""

from __future__ import annotations

from collections.abc import Mapping
from random import SystemRandom  # noqa: TID251 - here chance begins

from slackwater.cli.output import Output
from slackwater.commands import TIMEOUT_S, ask
from state.clock import SystemClock
from state.command import Command
from state.command_inbox import Answer
from state.location import Location


def carry_out(
    root: str,
    options: Mapping[str, str],
    command: Command,
    *,
    timeout_s: float = TIMEOUT_S,
    takeover: bool = False,
) -> Answer:
    """Has a command done.  Errors as `slackwater.commands.ask`."""
    return ask(
        Location(root, options),
        command,
        clock=SystemClock(),
        random=SystemRandom(),
        timeout_s=timeout_s,
        takeover=takeover,
    )


def print_outcome(answer: Answer, output: Output) -> None:
    """Prints what was done."""
    if output.json:
        output.document({"text": answer.text, **answer.values})
    else:
        output.text(answer.text)
