"""Schemas with some of the columns of another one; the same one if it has no others."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa


def only_columns(schema: pa.Schema, names: Collection[str] | None) -> pa.Schema:
    """The columns of these names, in the order of the schema; None for all."""
    if names is None:
        return schema
    known = frozenset(names)
    return schema if known.issuperset(schema.names) else pa.schema([field for field in schema if field.name in known])


def missing_columns(schema: pa.Schema, names: Collection[str]) -> tuple[str, ...]:
    """The names of the schema that are not among these, in its order."""
    known = frozenset(names)
    return tuple(name for name in schema.names if name not in known)


def without_columns(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """The columns of other names, in the order of the schema."""
    return pa.schema([field for field in schema if field.name not in names]) if names else schema
