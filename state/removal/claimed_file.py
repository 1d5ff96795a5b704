"""Deletion of one version of a user's file on a disk, which cannot delete a file that takes its name meanwhile.

    a.csv ──compare──► rename to .slackwater-<hash>.deleting ──compare again──► unlink
                                                     └── another file: rename it back, without replacing

A disk has no conditional deletion: between a comparison and `unlink` a producer can replace the file by `rename`, and
the new file would be deleted.  No other program uses the reserved name, so the second comparison is of the file that is
deleted.  The name is a hash of the file's name and version, so the next attempt finds a file that a killed process has
left.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, suppress
from hashlib import blake2b

from state.errors import RemovalRefusedError
from state.objects.etag import normal_etag, same_etag
from state.objects.local_identity import LocalFile, file_at
from state.removal.evidence import FinishedFile
from state.removal.local_path import directory_of, stat_at
from state.removal.part_file import rename_without_replacing

_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


def delete_claimed(directory: int, name: str, etag: str | None) -> bool:
    """Deletes a file if it has a version; returns False if it has another version, and stays.

    A file system that cannot rename without replacing, such as NFS, compares just before `unlink`.

    Args:
        directory: the descriptor of the directory.
        name: of the file, one part.

    Raises:
        FileNotFoundError: the file does not exist.
        RemovalRefusedError: two files have replaced the version meanwhile; the message names the place of the first.
        OSError: the disk refuses.
    """
    if not is_version(file_at(directory, name), etag):
        return False
    claim = _claim_of(name, etag)
    try:
        rename_without_replacing(directory, name, claim)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        os.unlink(name, dir_fd=directory)
        return True
    if is_version(file_at(directory, claim), etag):
        os.unlink(claim, dir_fd=directory)
        return True
    _give_back(directory, claim, name)
    return False


def recover(evidence: FinishedFile) -> None:
    """Undoes or completes a deletion in which a process was killed.

    The file gets its name again.  If another file has the name, the version that was being deleted is deleted.

    Raises:
        RemovalRefusedError: another file than the version was renamed, and its name is taken, see `delete_claimed`.
        OSError: the disk refuses.
    """
    with ExitStack() as opened:
        try:
            directory, name = opened.enter_context(directory_of(evidence.place.path, evidence.name))
        except (FileNotFoundError, RemovalRefusedError):
            return  # the deletion reports it
        claim = _claim_of(name, evidence.etag)
        if stat_at(directory, claim) is None:
            return
        if stat_at(directory, name) is not None and is_version(file_at(directory, claim), evidence.etag):
            os.unlink(claim, dir_fd=directory)
        else:
            _give_back(directory, claim, name)


def is_version(found: LocalFile, etag: str | None) -> bool:
    """True for a file that has a version, by its etag with or without the birth time."""
    is_same = same_etag(found.etag, etag) or same_etag(found.etag_of_obstore, etag)
    return is_same and not found.is_directory


def _give_back(directory: int, claim: str, name: str) -> None:
    try:
        with suppress(FileNotFoundError):
            rename_without_replacing(directory, claim, name)
    except FileExistsError:
        raise RemovalRefusedError(
            f"{name!r} was replaced twice while an earlier version was being deleted: the file between the two is "
            f"{claim!r} in the same directory, and is not read; rename or delete it"
        ) from None


def _claim_of(name: str, etag: str | None) -> str:
    text = f"{name}\0{normal_etag(etag)}".encode("utf-8", "surrogateescape")
    return f".slackwater-{blake2b(text, digest_size=16).hexdigest()}.deleting"
