"""Files and snapshots of published tables that the table's own log or metadata no longer needs."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from state.location import Location
from state.removal.local_path import require_no_links
from state.removal.objects import probe_names

_HOUR_S = 3_600
_MARGIN_HOURS = 7 * 24
DELTA_RETENTION = "delta.deletedFileRetentionDuration"
"""The property of a Delta table: how long its checkpoints name a file that the log has removed."""

ICEBERG_METADATA_DELETION = "write.metadata.delete-after-commit.enabled"
"""The property of an Iceberg table: whether a commit deletes metadata files that the metadata log drops."""


def delta_retention(keep_s: float) -> str:
    """The value of `DELTA_RETENTION` for a table whose removed files stay for `keep_s` seconds.

    It is a week longer: a removed file that no checkpoint names any more is never deleted.
    """
    return f"interval {math.ceil(keep_s / _HOUR_S) + _MARGIN_HOURS} hours"


def vacuum_delta(table: Any, place: Location, keep_s: float) -> list[str]:
    """Deletes the files that the log of a Delta table has removed, `keep_s` seconds after their removal.

    The evidence is the log: its `remove` actions.  A file that the log does not name stays, also the file
    of a writer that died before its commit.  delta-rs takes the names relative to the table, and escapes `..`.
    It follows links to directories, so a table with one is refused.

    Args:
        table: a `deltalake.DeltaTable`.
        keep_s: in seconds; part of an hour counts as an hour.

    Returns:
        The names of the files.

    Raises:
        RemovalRefusedError: a directory of the table is a link.
    """
    if place.is_local:
        require_no_links(place.path)
    # `full=True` would delete every file below the table that the log does not name.
    hours = math.ceil(keep_s / _HOUR_S)
    gone: list[str] = table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=False)
    return gone


def keep_metadata_of_others(table: Any) -> None:
    """Ends the deletion of old metadata files if the table's metadata names files in another directory.

    PyIceberg deletes each file that the metadata log drops, at any path: a program that can write the metadata could
    have any file deleted.

    Args:
        table: a `pyiceberg.table.Table`, as it will be committed to.
    """
    # The catalog names this directory, not the metadata itself.
    directory = table.metadata_location.rpartition("/")[0] + "/"
    names = [each.metadata_file.removeprefix(directory) for each in table.metadata.metadata_log]
    if all("/" not in name and ".metadata.json" in name for name in names):
        return
    if str(table.properties.get(ICEBERG_METADATA_DELETION, "false")).lower() != "false":
        with table.transaction() as transaction:
            transaction.set_properties({ICEBERG_METADATA_DELETION: "false"})


def keep_manifests_of_refused_commits(update: Any) -> None:
    """Ends the deletion of the manifests of a commit that the catalog refuses.

    PyIceberg takes a conflict as proof that the commit was not carried out.  A client of Glue, or a gateway before a
    catalog, that sends a request again after a lost answer gets a conflict with its own first attempt: the table needs
    the manifests.

    Args:
        update: an update of a snapshot of a `pyiceberg.table.Transaction`.
    """
    update._clean_all_uncommitted = lambda: None


def expire_snapshots(table: Any, until: datetime) -> None:
    """Removes snapshots older than a time from the metadata of an Iceberg table, except the heads of branches and tags.

    PyIceberg deletes no data file with them.  In tables that Slackwater made it deletes metadata files that the
    table's own metadata log has dropped, see `keep_metadata_of_others`.

    Args:
        table: a `pyiceberg.table.Table`.
    """
    table.maintenance.expire_snapshots().older_than(until).commit()


def probe_iceberg(io: Any, directory: str) -> None:
    """Writes and deletes a small object of a new name through the file access of an Iceberg table.

    Args:
        io: the `FileIO` of the table.
        directory: the URL of a directory of the table.

    Raises:
        OSError: the place cannot be written.
    """
    for name in probe_names():
        path = f"{directory}/{name}"
        try:
            io.new_output(path).create(overwrite=False).close()
        except FileExistsError:
            continue
        io.delete(path)
        return
