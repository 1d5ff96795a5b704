"""Which columns of its sources a view really uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from actors.formats.row_bytes import row_bytes
from spark_bridge.catalyst.catalyst import Catalyst, Plan, attribute_id
from state.tables.stored_rows import FILE_FIELD


def used_columns(catalyst: Catalyst, plan: Plan, leaves: Mapping[int, str]) -> dict[str, frozenset[str]]:
    """Source → the columns that a plan uses, by Spark's own rule that prunes columns.

    Args:
        catalyst: of the session.
        plan: analysed.
        leaves: the source that each leaf stands for, by the id of its first attribute.
    """
    pruned = catalyst.prune_columns(plan)
    wanted = {attribute_id(column) for column in catalyst.items(pruned.output())}
    outputs: dict[str, list[tuple[int, str]]] = {}
    plans = [pruned]
    while plans:
        each = plans.pop()
        children = catalyst.items(each.children())
        plans += children
        columns = each.references().toSeq() if children else each.output()
        ids = [attribute_id(column) for column in catalyst.items(columns)]
        if children:
            wanted.update(ids)
        else:
            names = [str(column.name()) for column in catalyst.items(columns)]
            outputs.setdefault(leaves[ids[0]], []).extend(zip(ids, names, strict=True))
    return {
        source: frozenset(name for number, name in columns if number in wanted) for source, columns in outputs.items()
    }


def columns_to_read(schema: pa.Schema, used: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """The columns of a source that its views use together; one that costs little if they only count its rows.

    Args:
        schema: of the source, perhaps with `__sw_file`.
        used: by each of its views.
    """
    wanted = frozenset[str]().union(*used)
    if not wanted:
        schema = pa.schema([field for field in schema if field.name != FILE_FIELD.name])
        return (min(schema, key=lambda field: (row_bytes([field]), schema.names.index(field.name))).name,)
    return tuple(name for name in schema.names if name in wanted)
