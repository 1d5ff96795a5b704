"""The store of a new published table: it must have the capabilities that the commits of the format rest on."""

from __future__ import annotations

from obstore.exceptions import BaseError

from slackwater.publishing.targets import Delta, ParquetFiles, Target
from state.capabilities.probe import ROOT_NEEDS, TABLE_NEEDS
from state.capabilities.store_record import require_table_store
from state.clock import Clock
from state.objects.storage_error import storage_error
from state.ownership.owner import new_run_id


def require_target_store(target: Target, clock: Clock) -> None:
    """Probes the store of a table that does not exist yet.  A catalog of Iceberg commits by itself.

    Args:
        target: the table.
        clock: gives the probe a name of its own.

    Raises:
        StoreCapabilityError: the store lacks a capability; nothing was written.
        StorageError: the place cannot be read or written.
    """
    if not isinstance(target, Delta | ParquetFiles):
        return
    needs = TABLE_NEEDS if isinstance(target, Delta) else ROOT_NEEDS
    try:
        require_table_store(target.location, new_run_id(clock), needs)
    except (BaseError, OSError) as error:
        raise storage_error(error, target.location) from error
