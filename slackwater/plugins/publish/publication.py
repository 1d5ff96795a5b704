"""Publication: the result of one call, and the epoch that a table names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.telemetry.logging import redact

_ROOT, _VIEW, _EPOCH = "slackwater.root", "slackwater.view", "slackwater.epoch"
_IDENTITY = "slackwater.identity"


@dataclass(frozen=True)
class PublishedEpoch:
    """The root, the view and the epoch that a commit of a table names.

    Args:
        root: the URL of the root.
        view: the name of the view.
        epoch: the epoch of the root whose rows the table has.
        identity: the identity of the root, see `StoreRecord`; empty if the root lacks one, or if an earlier version
            made the commit.
    """

    root: str
    view: str
    epoch: int
    identity: str = ""

    @property
    def application(self) -> str:
        """The name of the writer: one for each view of a root."""
        return ":".join(filter(None, ("slackwater", self.root, self.view, self.identity)))

    @property
    def words(self) -> str:
        """The root in a message: two roots can have one URL."""
        return f"{self.root} (identity {self.identity})" if self.identity else f"{self.root} (without an identity)"

    @property
    def properties(self) -> dict[str, str]:
        identity = {_IDENTITY: self.identity} if self.identity else {}
        return {_ROOT: self.root, _VIEW: self.view, _EPOCH: str(self.epoch), **identity}

    def may_follow(self, published: PublishedEpoch) -> bool:
        """True if a table that names another epoch belongs to the same view of the same root.

        URL and identity are compared: roots on two machines can have one URL, and a copy of a root has its identity.
        """
        is_root = published.root == self.root and published.identity in ("", self.identity)
        return is_root and published.view == self.view

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> PublishedEpoch | None:
        """The epoch in the properties of a commit; None if the commit is not ours."""
        root, view, epoch = (properties.get(name) for name in (_ROOT, _VIEW, _EPOCH))
        if root is None or view is None or not str(epoch).isdigit():
            return None
        return cls(str(root), str(view), int(str(epoch)), str(properties.get(_IDENTITY) or ""))


@dataclass(frozen=True)
class Publication:
    """The result of one publication.

    Args:
        view: the name of the view.
        target: the format and place of the table.
        epoch: the epoch that the table names now.
        since: the epoch that it named before; None for the first publication.
        is_whole: true if all rows were written, and not only the changed rows.
        rows: the number of rows written: new and changed ones.
        removed: the number of rows removed; with a key, of groups that are gone; 0 if all were written.
        version: the version of the table, in the words of its format.
        incomplete: why the view, and so the table, lacks rows; empty if it has all rows of the epoch.
    """

    view: str
    target: str
    epoch: int
    since: int | None
    is_whole: bool
    rows: int
    removed: int
    version: str
    incomplete: str = ""


def failed_view(view: str, reason: str) -> str:
    """The message about the table of a view that has failed: it has all rows that the view has."""
    first_line = redact(reason.partition("\n")[0])
    return f"view {view} has failed, and its table lacks the same rows: {first_line}"


def unfinished_view(view: str) -> str:
    """The message about the table of a view that lacks earlier rows."""
    return f"the backfill of view {view} is not complete"
