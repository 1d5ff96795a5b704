"""Actions on files after the commit: a pipeline declares a deletion, a move or tags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from actors.sources.source import SourceDefinition
from actors.telemetry.logging import redact
from actors.telemetry.masked_repr import masked_repr
from slackwater.extensions.entry import load
from slackwater.extensions.file_action import DeclaredFileAction
from state.errors import SettingsError
from state.location import Location

# Times further back have no date.
_MOST_S = 36_525 * 86_400
_MOST_TAGS, _MOST_KEY, _MOST_VALUE = 10, 128, 256


class _Action:
    """An action, as a `FileAction` of the core."""

    takes_away: ClassVar[bool] = True

    def for_source(self, source: SourceDefinition) -> DeclaredFileAction:
        """The action on the files of a source.

        Raises:
            SettingsError: the source does not allow it.
        """
        action: DeclaredFileAction = load("slackwater.plugins.after_commit.declaration:declared")(source, self)
        return action


@dataclass(frozen=True)
class Delete(_Action):
    """Deletes files whose rows are committed.

    Args:
        keep_s: seconds from the commit to the deletion, from 0 to 100 years.

    Raises:
        SettingsError: the number is not valid.
    """

    keep_s: float

    def __post_init__(self) -> None:
        _require_seconds(self.keep_s)

    def __str__(self) -> str:
        return "delete"


@dataclass(frozen=True)
class Move(_Action):
    """Moves files whose rows are committed to the same paths below another URL.

    Args:
        url: a local path or URL; `s3://`, `gs://` or `az://`.
        keep_s: seconds from the commit to the move, from 0 to 100 years.
        storage_options: access to the URL, by the names that `Pipeline` takes.  Without any, the options of the source
            count for a URL on the same kind of store.

    Raises:
        SettingsError: the URL or the number is not valid.
    """

    url: str
    keep_s: float = 0.0
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _require_seconds(self.keep_s)
        if self.location.is_web:
            raise SettingsError(
                f"Move({redact(self.url)!r}): files cannot be written to a web server; give a bucket or a path"
            )

    @property
    def location(self) -> Location:
        return Location(self.url, self.storage_options)

    def __repr__(self) -> str:
        return masked_repr(self)

    def __str__(self) -> str:
        return f"move to {self.location}"


@dataclass(frozen=True)
class Tag(_Action):
    """Adds tags to objects in S3 whose rows are committed, for example for a lifecycle rule of the bucket.

    Args:
        tags: names and values; the other tags of an object stay.
        keep_s: seconds from the commit to the tag, from 0 to 100 years.

    Raises:
        SettingsError: S3 does not accept the tags, or the number is not valid.
    """

    takes_away: ClassVar[bool] = False

    tags: Mapping[str, str]
    keep_s: float = 0.0

    def __post_init__(self) -> None:
        _require_seconds(self.keep_s)
        tags = self.tags
        if not isinstance(tags, Mapping) or not 0 < len(tags) <= _MOST_TAGS:
            raise SettingsError(f'Tag({tags!r}): give one to ten tags, for example Tag({{"slackwater": "done"}})')
        for key, value in tags.items():
            is_text = isinstance(key, str) and isinstance(value, str)
            if not is_text or not 0 < len(key) <= _MOST_KEY or len(value) > _MOST_VALUE:
                raise SettingsError(
                    f"Tag({tags!r}): a tag has a name of 1 to {_MOST_KEY} characters, and a text of at most "
                    f"{_MOST_VALUE} as its value"
                )

    def __str__(self) -> str:
        return f"tag {json.dumps(dict(sorted(self.tags.items())))}"


After: TypeAlias = Delete | Move | Tag


def _require_seconds(keep_s: object) -> None:
    if isinstance(keep_s, bool) or not isinstance(keep_s, (int, float)) or not 0 <= keep_s <= _MOST_S:
        raise SettingsError(
            f"keep_s={keep_s!r}: give a number of seconds, 0 or more, and at most {_MOST_S:,} (100 years)"
        )
