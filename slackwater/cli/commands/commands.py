"""`slackwater pause`, `resume`, `stop`, `throttle`, `rescale` and `retry`: what is asked of whoever owns a root."""

from __future__ import annotations

from collections.abc import Mapping
from random import SystemRandom  # noqa: TID251 - here chance begins

from slackwater.cli.terminal.output import Output
from slackwater.commands.ask import TIMEOUT_S, ask
from state.clock import SystemClock
from state.errors import UsageError
from state.location import Location
from state.ownership.command import Command
from state.ownership.command_inbox import Answer
from state.vnode import VNODES, fetcher_bounds


def carry_out(
    root: str,
    options: Mapping[str, str],
    command: Command,
    *,
    timeout_s: float = TIMEOUT_S,
    takeover: bool = False,
) -> Answer:
    """Has a command done.  Errors as `slackwater.commands.ask.ask`."""
    return ask(
        Location(root, options),
        command,
        clock=SystemClock(),
        random=SystemRandom(),
        timeout_s=timeout_s,
        takeover=takeover,
    )


def parsed_fetchers(text: str) -> tuple[int, int]:
    """The fewest and the most fetch actors that `4` or `1-8` stands for.

    Raises:
        UsageError: it stands for none.
    """
    fewest, dash, most = text.partition("-")
    numbers = (fewest, most if dash else fewest)
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise UsageError(f"{text!r} is no number of fetch actors: give one from 1 to {VNODES}, or two as in 1-8")
    return fetcher_bounds(tuple(int(number) for number in numbers))


def print_outcome(answer: Answer, output: Output) -> None:
    """Prints what was done."""
    if output.json:
        output.document({"text": answer.text, **answer.values})
    else:
        output.text(answer.text)
