"""The declaration of lineage."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from actors.telemetry.logging import redact
from actors.telemetry.masked_repr import masked_repr, masked_url
from slackwater.extensions.companion import Companion, RunContext
from slackwater.extensions.entry import load
from state.errors import SettingsError, UsageError

_WEB = re.compile(r"https?://[^/\s]+\S*")


@dataclass(frozen=True)
class OpenLineage:
    """Events of OpenLineage about the runs of a pipeline, for Marquez, DataHub, OpenMetadata and others.

    Args:
        to: the URL of an endpoint, below which events are posted to `api/v1/lineage`; or a local file, to which each
            event is appended as a line of JSON.  A key for the endpoint comes from the environment variable
            `OPENLINEAGE_API_KEY`.
        namespace: of the jobs.
        every_s: seconds from one event about a view that changes to the next.

    Raises:
        SettingsError: an argument is not valid.
        UsageError: `openlineage-python` is not installed.
    """

    to: str
    namespace: str = "slackwater"
    every_s: float = 60.0

    def __post_init__(self) -> None:
        shown = f"OpenLineage(to={redact(self.to)!r})"
        if not isinstance(self.to, str) or not self.to.strip():
            raise SettingsError(f"{shown}: give the URL of an endpoint, or the path of a file")
        if not self.is_web:
            if "://" in self.to:
                raise SettingsError(f"{shown}: give an http(s) URL, or the path of a local file")
            if not Path(self.to).absolute().parent.is_dir() or Path(self.to).is_dir():
                raise SettingsError(f"{shown}: give a file in an existing directory")
        if not self.namespace.strip():
            raise SettingsError("OpenLineage(namespace=...) is empty; give the namespace of the jobs")
        if isinstance(self.every_s, bool) or not (math.isfinite(self.every_s) and self.every_s > 0):
            raise SettingsError(f"OpenLineage(every_s={self.every_s!r}): give seconds above 0")
        if find_spec("openlineage") is None:
            raise UsageError("OpenLineage needs openlineage-python; pip install 'slackwater[lineage]'")

    def __repr__(self) -> str:
        """The path of an endpoint is masked."""
        return masked_repr(self, to=masked_url(self.to) if self.is_web else self.to)

    @classmethod
    def companion(cls, options: Sequence[OpenLineage], run: RunContext) -> Companion:
        """The events of a run, for the one receiver of its pipeline."""
        (target,) = options
        watch: Companion = load("slackwater.plugins.lineage.lineage_watch:lineage_watch")(target, run)
        return watch

    @property
    def is_web(self) -> bool:
        """True if events go to an endpoint."""
        return _WEB.fullmatch(self.to) is not None
