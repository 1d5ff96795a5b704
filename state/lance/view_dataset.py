"""Datasets of views: created once, fenced at a take-over, and tagged for plain Lance readers."""

from __future__ import annotations

import lance
import pyarrow as pa

from state.errors import FencedError
from state.lance.dataset_files import DatasetFiles
from state.lance.lance_access import create_dataset, open_dataset
from state.location import Location
from state.objects.storage_error import storage_error
from state.removal.datasets import delete_tags
from state.tables.records import ViewVersion

COMMITTED_TAG = "committed"
_TERM_TAG = "term-"


def create(location: Location, table: pa.Table) -> lance.LanceDataset:
    """A new dataset that holds `table`, as its version 1.

    Raises:
        CommitRefusedError: a dataset exists already at this location.
        StorageError: the location cannot be written.
    """
    return create_dataset(location, table)


def restore(root: Location, view: ViewVersion, term: int) -> ViewVersion:
    """Makes the recorded version of a view its latest one, so that commits of older writers are refused.

    Call it only after a successful take-over.  The new version is tagged with the term, so that no clean-up removes
    the fence; the tags of older terms are deleted.

    Args:
        root: the root that the pipeline writes to.
        view: the version that the head records.
        term: the term of the take-over.

    Returns:
        The view with the new versions, which hold exactly the rows of the recorded ones.

    Raises:
        FencedError: a later term has already fenced the view.
        NotFoundError: the recorded version does not exist.
        StorageError: the dataset cannot be written.
    """
    return view.at({path: _restore_dataset(root.child(path), each, term) for path, each in view.datasets.items()})


def tag_committed(root: Location, view: ViewVersion) -> None:
    """Moves the tag `committed` of a view's dataset to the recorded version; never back.

    A process that was frozen during a take-over may call this with an old version.

    Raises:
        NotFoundError: the recorded version does not exist.
        StorageError: the dataset cannot be written.
    """
    location = root.child(view.path)
    dataset = open_dataset(location, view.version)
    tagged = _tagged(dataset, COMMITTED_TAG)
    if tagged is None or tagged < view.version:
        _set_tag(dataset, location, COMMITTED_TAG, view.version)


def _restore_dataset(location: Location, version: int, term: int) -> int:
    files = DatasetFiles(location)
    files.settle(acknowledged=version)
    dataset = open_dataset(location, version)
    terms = {tag: int(tag[len(_TERM_TAG) :]) for tag in dataset.tags.list() if tag.startswith(_TERM_TAG)}
    if any(each > term for each in terms.values()):
        raise FencedError(f"{location} is fenced by term {max(terms.values())}, ours is {term}: this process stops")
    try:
        dataset.restore()
    except (OSError, ValueError) as error:
        raise storage_error(error, location) from None
    files.sync_version(dataset.version)
    _set_tag(dataset, location, f"{_TERM_TAG}{term}", dataset.version)
    delete_tags(dataset, _TERM_TAG, [tag for tag, each in terms.items() if each < term])
    return int(dataset.version)


def _set_tag(dataset: lance.LanceDataset, location: Location, tag: str, version: int) -> None:
    try:
        if tag in dataset.tags.list():
            dataset.tags.update(tag, version)
        else:
            dataset.tags.create(tag, version)
    except (OSError, ValueError) as error:
        # The answer may have been lost, and the repeated request refused.
        if _tagged(dataset, tag) != version:
            raise storage_error(error, location) from None
    DatasetFiles(location).sync_tag(tag)


def _tagged(dataset: lance.LanceDataset, tag: str) -> int | None:
    found = dataset.tags.list().get(tag)
    return None if found is None else int(found["version"])
