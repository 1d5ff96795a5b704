"""Tags: names of epochs.  A tagged epoch stays readable until its tag is deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from state.errors import EpochNotFoundError, NotFoundError, UsageError
from state.tables.expectations import PUBLISHED, Gate
from state.tables.keys import encode_key
from state.upkeep.branches import is_branch_tag, require_free, user_tags

if TYPE_CHECKING:
    from state.store.store import StateStore

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_MOST = 1_000


def check_tag_name(name: str) -> None:
    """Refuses names that look like an epoch or a time, or are hard to type.

    Raises:
        UsageError: the name is not a valid tag name.
    """
    if name == "latest" or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid tag name: it begins with a letter, has at most 64 letters, digits, '.', '_' and "
            "'-', and is not `latest`"
        )


def put_tag(store: StateStore, name: str, epoch: int) -> None:
    """Tags an epoch; an existing tag of this name moves to it, but for the tag of a branch.

    Args:
        name: the name of the tag, see also `state.upkeep.branches`.
        epoch: a retained epoch.

    Raises:
        UsageError: the name is not a valid tag name, or belongs to the gate; the branch exists; or there are
            too many tags.
        EpochNotFoundError: the epoch is not, or no longer, retained.
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    tags = store.head.tags
    if is_branch_tag(name):
        require_free(tags, name)
    else:
        check_tag_name(name)
        _require_users(store, name)
    if tags.get(name) == epoch:
        return
    if store.get("epoch", encode_key(epoch)) is None:
        raise EpochNotFoundError(f"epoch {epoch} cannot be tagged {name!r}: it is not retained; choose one of `epochs`")
    if name not in tags and len(tags) >= _MOST:
        raise UsageError(f"tag {name!r} would be one more than {_MOST:,}, and each commit writes all tags: delete some")
    store.amend(tags={**tags, name: epoch})


def delete_tag(store: StateStore, name: str) -> None:
    """Deletes a tag; its epoch then expires by the retention.

    Raises:
        NotFoundError: the tag does not exist.
        UsageError: the tag belongs to the gate.
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    _require_users(store, name)
    tags = dict(store.head.tags)
    if name not in tags:
        raise NotFoundError(f"there is no tag {name!r}; the tags are: {', '.join(user_tags(tags)) or 'none'}")
    del tags[name]
    store.amend(tags=tags)


def require_gate_tag(root: object, gate: Gate, tags: Mapping[str, int]) -> None:
    """Refuses a tag of a user that a gate would move.

    Args:
        root: the root, in words.
        gate: its gate as of the last commit, before a view holds results back.
        tags: the tags of its head.

    Raises:
        UsageError: there is such a tag.
    """
    if gate == "none" and PUBLISHED in tags:
        raise UsageError(
            f'{root} has a tag {PUBLISHED!r}, which views with on_violation="hold" move from now on: keep its epoch '
            "under another name, and delete it (`slackwater tag --delete`)"
        )


def _require_users(store: StateStore, name: str) -> None:
    """Refuses the tag of the gate, while a view holds results back."""
    from state.tables.catalog import Catalog  # late: commands import this module, and need no Arrow

    if name == PUBLISHED and Catalog.of(store.scan("catalog")).gate != "none":
        raise UsageError(
            f'the tag {PUBLISHED!r} follows the views with on_violation="hold": take another name, or `slackwater '
            "release` to move it"
        )
