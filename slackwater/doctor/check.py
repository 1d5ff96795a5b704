"""What every check does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from slackwater.doctor.finding import Finding


class Check(Protocol):
    """Looks at one thing.  Changes nothing that stays."""

    @property
    def name(self) -> str:
        """What it looks at."""
        ...

    def findings(self) -> Iterable[Finding]:
        """What it finds.  Whatever it raises becomes a finding, too."""
        ...
