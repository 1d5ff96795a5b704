"""The corrections of an epoch: old and new rows of each corrected file, read from the stored rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import lance
import pyarrow as pa

from actors.formats.limits import row_bytes
from actors.protocol.blocks import Correction, StoredBlock
from spark_bridge.changes.change_set import NO_VALUES, LeafValues
from spark_bridge.changes.rows_before import OpenVersion
from spark_bridge.datasets.stored_rows import in_condition
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.dataset_frame import WantedRows, columns_there, rows_of_dataset
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.plans.columns import columns_to_read
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.work_cost import count
from state.lance.deletion_vector import deleted_rows
from state.location import Location
from state.tables.epoch_trace import WorkCost
from state.tables.fingerprint import path_fingerprint
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, WEIGHT_FIELD

_FILES_AT_ONCE = 500
_MOST_POSITIONS = 20_000
_GONE = ""
"""In place of the deletion file of a fragment that is there no more."""


@dataclass(frozen=True)
class CorrectedSource:
    """The corrections of one epoch to one source.

    Args:
        files: path → fingerprint of each file whose old rows are removed.
    """

    files: Mapping[str, bytes]
    blocks: Sequence[StoredBlock]


def corrected_sources(corrections: Sequence[Correction]) -> dict[str, CorrectedSource]:
    """Source → its corrections; of several corrections of one file the last counts."""
    last: dict[str, dict[str, Correction]] = {}
    for each in corrections:
        last.setdefault(each.source, {})[each.path] = each
    return {
        source: CorrectedSource(
            {path: path_fingerprint(source, path) for path in files},
            [block for each in files.values() for block in each.stored],
        )
        for source, files in last.items()
    }


class CorrectedRows:
    """The rows that a view needs to follow the corrections of an epoch.

    Args:
        root: the directory of the pipeline.
        open_version: opens stored rows at a version.
        schemas: source → its schema; stored rows may lack the latest columns.
        sources: source → its corrections.
        before: source → version of its stored rows with the epoch's new rows, without its corrections.
        after: source → version of its stored rows with the corrections too.
        parallelism: number of tasks that the session runs at once.
        time_us: time of the epoch, see `EpochRows`.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        root: Location,
        open_version: OpenVersion,
        schemas: Mapping[str, pa.Schema | None],
        sources: Mapping[str, CorrectedSource],
        before: Mapping[str, ViewVersion],
        after: Mapping[str, ViewVersion],
        parallelism: int,
        time_us: int,
    ) -> None:
        self._time_us = time_us
        self._catalyst, self._root, self._schemas, self._parallelism = catalyst, root, schemas, parallelism
        self._open = open_version
        self._sources, self._before, self._after = sources, before, after
        self._datasets: dict[ViewVersion, lance.LanceDataset] = {}
        self._fragments: dict[str, tuple[set[int], set[int]]] = {}
        self._positions: dict[str, dict[int, list[int]] | None] = {}

    @property
    def sources(self) -> frozenset[str]:
        """The corrected sources."""
        return frozenset(self._sources)

    def old(self, plan: ViewPlan) -> EpochRows:
        """The old rows of the corrected files."""
        return self._rows(plan, self._before, self._sources.keys())

    def new(self, plan: ViewPlan) -> EpochRows:
        """The new rows of the corrected files."""
        return self._rows(plan, self._after, self._sources.keys())

    def both(self, plan: ViewPlan, *, weighted: bool) -> EpochRows:
        """The old rows of the corrected files, and the new ones."""
        old, new = self.old(plan), self.new(plan)
        frames = {
            source: _together(self._catalyst, new.frames.get(source), old.frames.get(source), weighted)
            for source in new.frames.keys() | old.frames.keys()
        }
        return replace(new, frames=frames, nbytes=old.nbytes + new.nbytes)

    def all(self, plan: ViewPlan, values: LeafValues = NO_VALUES) -> EpochRows:
        """All rows of the sources, with the corrections, or at least those with these values."""
        return self._rows(plan, self._after, None, values)

    def files(self, sources: Collection[str]) -> pa.Array:
        """The fingerprints of these sources' corrected files."""
        files = [file for name, each in self._sources.items() if name in sources for file in each.files.values()]
        return pa.array(files, FILE_FIELD.type)

    def file_conditions(self, sources: Collection[str]) -> Iterator[str]:
        """Yields SQL conditions that together select the rows of these sources' corrected files."""
        files = self.files(sources).to_pylist()
        for start in range(0, len(files), _FILES_AT_ONCE):
            yield in_condition(FILE_FIELD.name, files[start : start + _FILES_AT_ONCE])

    def _rows(
        self,
        plan: ViewPlan,
        stored: Mapping[str, ViewVersion],
        corrected: Collection[str] | None,
        values: LeafValues = NO_VALUES,
    ) -> EpochRows:
        """The columns that a view uses, of all files (`corrected` is None) or of the corrected ones."""
        frames, nbytes = {}, 0
        for source in plan.sources:
            if corrected is not None and source not in corrected:
                continue
            files = None if corrected is None else self._sources[source].files
            if source not in stored:
                continue
            location, dataset = self._opened(stored[source])
            fragments = None if corrected is None else self._changed(source, stored)
            schema = self._schemas[source]
            assert schema is not None, "a source with rows has a schema"
            used = columns_to_read(schema.append(FILE_FIELD), [plan.columns[source]])
            positions = self._taken(source) if fragments and stored is self._before else None
            wanted = WantedRows(source, files, values.get(source, {}), fragments, positions=positions)
            frames[source], rows = rows_of_dataset(
                self._catalyst.spark, location, dataset, columns_there(dataset, used), wanted
            )
            count(WorkCost(given=rows))
            nbytes += rows * row_bytes(schema.append(FILE_FIELD).field(name) for name in used)
        return EpochRows(frames, nbytes, self._parallelism, self._time_us)

    def _changed(self, source: str, stored: Mapping[str, ViewVersion]) -> set[int] | None:
        """The fragments whose rows the corrections took or brought; None if there were no stored rows before."""
        if source not in self._before:
            return None
        if source not in self._fragments:
            versions = self._before[source], self._after[source]
            before, after = (
                {each.fragment_id: each.deletion_file() for each in self._opened(version)[1].get_fragments()}
                for version in versions
            )
            taken = {number for number, deleted in before.items() if after.get(number, _GONE) != deleted}
            self._fragments[source] = taken, after.keys() - before.keys()
        taken, brought = self._fragments[source]
        return brought if stored is self._after else taken

    def _taken(self, source: str) -> dict[int, list[int]] | None:
        """Fragment → the positions of the rows that the corrections took, before; None if they are many, or not known.

        The deletions of the two versions tell them, without a scan of the fragments.  A fragment that is not there
        after may have been merged with others before the corrections.
        """
        if source not in self._positions:
            self._positions[source] = self._positions_of(source)
        return self._positions[source]

    def _positions_of(self, source: str) -> dict[int, list[int]] | None:
        (location, before), (_, later) = self._opened(self._before[source]), self._opened(self._after[source])
        after = {each.fragment_id: each for each in later.get_fragments()}
        positions, most = dict[int, list[int]](), _MOST_POSITIONS
        for number in self._fragments[source][0]:
            fragment = before.get_fragment(number)
            assert fragment is not None, "it is one of this version"
            if number not in after:
                return None
            deleted = deleted_rows(location, before, fragment)
            taken = (deleted_rows(location, later, after[number]) - deleted).to_array()
            most -= len(taken)
            if most < 0:
                return None
            positions[number] = [each - deleted.rank(each) for each in taken]
        return positions

    def _opened(self, version: ViewVersion) -> tuple[Location, lance.LanceDataset]:
        location = self._root.child(version.path)
        if version not in self._datasets:
            self._datasets[version] = self._open(version)
        return location, self._datasets[version]


def _together(catalyst: Catalyst, new: LeafRows | None, old: LeafRows | None, weighted: bool) -> LeafRows | None:
    """Old and new rows; the old ones lack a column that the new ones have brought."""
    present = [(rows, weight) for rows, weight in ((new, 1), (old, -1)) if rows is not None]
    given = [rows.with_constant(catalyst, WEIGHT_FIELD, weight) if weighted else rows for rows, weight in present]
    if len(given) < 2:
        return given[0] if given else None
    return LeafRows.together(catalyst, given)
