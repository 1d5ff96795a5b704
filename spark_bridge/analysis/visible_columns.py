"""The columns of its sources that a view knows: those that there were when it was created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa

from state.tables.records import CatalogView

_Schema = TypeVar("_Schema", pa.Schema, "pa.Schema | None")


def visible_schemas(schemas: Mapping[str, _Schema], view: CatalogView | None) -> dict[str, _Schema]:
    """The schemas of the sources as a view sees them, so that `SELECT *` means the same for ever.

    Args:
        schemas: of the sources, with the columns that were added since; None while one is not known.
        view: as the catalog has it; None if it is new, and sees everything.
    """
    visible: Mapping[str, tuple[str, ...]] = {} if view is None else view.visible
    return {
        source: pa.schema([schema.field(name) for name in visible[source]])
        if schema is not None and source in visible
        else schema
        for source, schema in schemas.items()
    }
