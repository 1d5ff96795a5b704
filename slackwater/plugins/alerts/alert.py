"""The declaration of an alert."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from actors.telemetry.logging import REDACTED
from actors.telemetry.masked_repr import masked_repr, masked_url
from slackwater.extensions.companion import Companion, RunContext
from slackwater.extensions.entry import load
from slackwater.plugins.alerts.condition import Condition
from state.errors import SettingsError

LOG: Literal["log"] = "log"
_WEB = re.compile(r"https?://[^/\s]+\S*")


@dataclass(frozen=True)
class Alert:
    """An alert: a notice when a condition begins to hold for a source, a view or the pipeline, and one when it ends.

    Args:
        when: the condition: `lag > 5 minutes` (seconds since the oldest unfinished file of a source was listed),
            `watermark lag > 1 hour`, `view lag > 10 minutes` (of a recomputed view), `quarantined files > 0`,
            `bad records > 100`, `paused removals > 0`, `late rows > 0`, `violations > 0` (rows of a
            view that violate expectations), `no file for 2 hours`, `no commit for 10 minutes`, `view failed`, `held`
            (a view is held back by `on_violation="hold"`) or `run failed`.
        to: the receiver: `"log"`; the URL of a webhook, which gets a POST with JSON; or a command as a list of its
            arguments, which gets the JSON at its standard input.  A receiver that fails is tried again for an hour.
        name: the name in notices; two alerts of a pipeline have different ones.  The condition, unless it is given.

    Raises:
        SettingsError: an argument is not valid.

    Examples:
        >>> Alert("quarantined files > 0", to="https://hooks.example.com/T0/B0").name
        'quarantined files > 0'
    """

    when: str
    to: str | Sequence[str] = LOG
    name: str = ""

    def __post_init__(self) -> None:
        _ = self.condition  # refuses a text that is none
        object.__setattr__(self, "name", self.name or " ".join(self.when.split()))
        if isinstance(self.to, str):
            if self.to != LOG and not _WEB.fullmatch(self.to):
                raise SettingsError(
                    f"alert {self.name!r}: to is neither 'log' nor an http(s) URL; give a command as a list, as in "
                    'to=["notify-send", "slackwater"]'
                )
            return
        object.__setattr__(self, "to", tuple(self.to))
        if not self.to or not all(isinstance(each, str) for each in self.to):
            raise SettingsError(f"alert {self.name!r}: a command is a list of texts, as in to=['notify-send', 'alert']")
        if shutil.which(self.to[0]) is None:
            raise SettingsError(
                f"alert {self.name!r}: there is no program {self.to[0]!r} on this machine; give its whole path"
            )

    def __repr__(self) -> str:
        """The path of a webhook and the arguments of a command are masked: they often are, or contain, a password."""
        if not isinstance(self.to, str):
            to = [self.to[0], *([REDACTED] if len(self.to) > 1 else [])]
            return masked_repr(self, to=to)
        return masked_repr(self, to=self.to if self.to == LOG else masked_url(self.to))

    @classmethod
    def companion(cls, options: Sequence[Alert], run: RunContext) -> Companion:
        """The watch of a run for these alerts.

        Raises:
            StorageError: the root cannot be read.
        """
        make = load("slackwater.plugins.alerts.alert_watch:AlertWatch")
        watch: Companion = make(options, run.pipeline, run.root, run.clock)
        return watch

    @cached_property
    def condition(self) -> Condition:
        """The condition, read from its text."""
        return Condition.of(self.when)
