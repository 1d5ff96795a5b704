"""A wrong index: one over the rows of a dataset in another order, whose files are whole."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
from lance import LanceOperation, Transaction
from lance.dataset import Index

from state.location import Location


def make_wrong(location: Location, column: str, scratch: Path) -> None:
    """Puts a wrong index in the place of a dataset's index of a column, as a new version.

    Args:
        location: of the dataset.
        column: the column of the index.
        scratch: a directory that does not exist.
    """
    dataset = lance.dataset(location.lance_uri)
    field = dataset.schema.field(column)
    rows = dataset.to_table(columns=[column])
    other = Location(str(scratch))
    lance.write_dataset(rows.take(pa.array(range(rows.num_rows - 1, -1, -1))).cast(pa.schema([field])), other.lance_uri)
    turned = lance.dataset(other.lance_uri)
    turned.create_scalar_index(column, "BTREE")
    [wrong] = turned.read_transaction(turned.version).operation.new_indices
    [described] = [each for each in dataset.describe_indices() if column in each.field_names]
    shutil.copytree(other.path / "_indices" / wrong.uuid, location.path / "_indices" / wrong.uuid)
    right = [
        Index(str(piece.uuid), described.name, described.fields, dataset.version, set(piece.fragment_ids), 0)
        for piece in described.segments
    ]
    covered = {fragment for piece in described.segments for fragment in piece.fragment_ids}
    new = replace(
        wrong, name=described.name, fields=described.fields, dataset_version=dataset.version, fragment_ids=covered
    )
    lance.LanceDataset.commit(dataset, Transaction(dataset.version, LanceOperation.CreateIndex([new], right)))
