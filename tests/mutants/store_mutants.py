"""Deliberate faults in the store on Lance: commits, folds, readings, staged rows, vacuum, and full views."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ON_LANCE, _FULL = "scenario.on_lance", "scenario.full_view"

STORE_MUTANTS = (
    Mutant(
        "an interrupt in a read is an error of the store",
        "state/objects/storage_error.py",
        (("        raise KeyboardInterrupt\n", "        pass\n"),),
        shown_by="tests/state/lance/test_lance_store.py",
    ),
    Mutant(
        "the name of an object can look like a fault of its store",
        "state/objects/store_faults.py",
        (("signs.words)\n        )", "signs.words + signs.loose_words)\n        )"),),
        shown_by="tests/actors/objects/test_store_errors.py",
    ),
    Mutant(
        "a fold drops a deletion of a row that an older run has",
        "state/upkeep/fold.py",
        (("merged(table, sources), is_oldest=not runs), rows)", "merged(table, sources), is_oldest=True), rows)"),),
        among=_ON_LANCE,
        start=273,
    ),
    Mutant(
        "the counts of the ledger stay as they are in a fold",
        "state/upkeep/fold.py",
        (("            left = replace(left, counts=self._recounted(", "            (left, self._recounted("),),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a fold leaves the fragments that it replaces",
        "state/upkeep/fold.py",
        (("removed = [each.fragment for each in flushed]", "removed = [each.fragment for each in flushed[1:]]"),),
        among=_ON_LANCE,
        start=247,
    ),
    Mutant(
        "a fold is shown without its directory",
        "state/lance/lance_store.py",
        (
            (
                "operation = self._swap_of_head(self._write(_head_rows(head)), fold.new, fold.removed, fold.directory)",
                "operation = self._swap_of_head(self._write(_head_rows(head)), fold.new, fold.removed)",
            ),
        ),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a folded fragment is read as a part of the log, too",
        "state/lance/lance_store.py",
        ((" and path not in directory.paths\n", "\n"),),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a directory is read once",
        "state/lance/lance_store.py",
        (("        if self._directory[0] != path:\n", "        if not self._directory[0]:\n"),),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a handle reads the version before its commit",
        "state/lance/lance_store.py",
        (
            (
                "        self._dataset = dataset\n        self._version = dataset.version\n",
                "        self._version = dataset.version\n",
            ),
        ),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a look-up does not see the log",
        "state/runs/table_reader.py",
        ((", self._in_log(ranges)]", "]"),),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a range begins behind its first key",
        "state/runs/sources.py",
        (
            (
                "first = 0 if start is None else bisect_left(every, start, key=lambda at: self._keys[at].as_py())",
                "first = 0 if start is None else bisect_right(every, start, key=lambda at: self._keys[at].as_py())",
            ),
        ),
        among=_ON_LANCE,
        start=247,
    ),
    Mutant(
        "a deleted row is current",
        "state/tables/resolve.py",
        (('pc.equal(latest["op"], pa.scalar(PUT', 'pc.not_equal(latest["op"], pa.scalar(PATCH'),),
        among=_ON_LANCE,
        start=247,
    ),
    Mutant(
        "the vacuum deletes every version up to the last that it must delete",
        "state/removal/datasets.py",
        (("versions=sorted(evidence.versions),", "versions=list(range(1, max(evidence.versions) + 1)),"),),
        among=_ON_LANCE,
        start=247,
    ),
    Mutant(
        "the vacuum deletes one version at a time",
        "state/removal/datasets.py",
        (("versions=sorted(evidence.versions),", "versions=sorted(evidence.versions)[:1],"),),
        among=_ON_LANCE,
        start=247,
    ),
    Mutant(
        "an epoch less is kept",
        "state/upkeep/retention.py",
        (("ordered[-retention.keep_epochs :]", "ordered[1 - retention.keep_epochs or len(ordered) :]"),),
    ),
    Mutant(
        "a vacuum takes the versions after the last one that is named",
        "state/upkeep/vacuum.py",
        ((" if version < each.last}", "}"),),
        start=31,
    ),
    Mutant(
        "a take-over does not fence a view",
        "state/lance/view_dataset.py",
        (("        dataset.restore()\n", "        pass\n"),),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a writer of a view begins at the last version, not at its own",
        "spark_bridge/datasets/view_table.py",
        (("open_dataset(location, version, index", "open_dataset(location, None, index"),),
        among=_ON_LANCE,
        start=1_414,
    ),
    Mutant(
        "an upsert leaves the rows before",
        "spark_bridge/datasets/dataset_writer.py",
        (("updated_fragments=changed, new_fragments=new)", "new_fragments=new)"),),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "a replacement of rows leaves a fragment",
        "spark_bridge/datasets/dataset_writer.py",
        (("removed_fragment_ids=before, new", "removed_fragment_ids=before[1:], new"),),
        among=_ON_LANCE,
        start=157,
    ),
    Mutant(
        "rows that an earlier commit has deleted are back",
        "spark_bridge/datasets/row_deletions.py",
        (("deleted = self._deleted(dataset, fragment) | gone", "deleted = gone"),),
        among=_ON_LANCE,
        start=300,
    ),
    Mutant(
        "rows that come during a recomputation are not noted",
        "spark_bridge/maintenance/full_views.py",
        (
            (
                "            if not sources.isdisjoint(each.view.plan.sources):\n                each.on_rows()",
                "            if self._running is None and not sources.isdisjoint(each.view.plan.sources):\n"
                "                each.on_rows()",
            ),
        ),
        among=_FULL,
        start=120,
    ),
    Mutant(
        "a full view does not follow corrections",
        "spark_bridge/maintenance/recorded_views.py",
        (("self._full.on_rows(changed)", "self._full.on_rows(frozenset(sources))"),),
        among=_FULL,
        start=43,
    ),
    Mutant(
        "a full view is not behind while it is recomputed",
        "spark_bridge/maintenance/full_views.py",
        (("return frozenset(running.union(name for", "return frozenset((name for"),),
        among=_FULL,
        start=13,
    ),
    Mutant(
        "no epoch is requested for a recomputation that is over",
        "spark_bridge/maintenance/full_views.py",
        (("return is_over or any(", "return any("),),
        among=_FULL,
        start=13,
    ),
    Mutant(
        "a restart takes every full view for complete",
        "spark_bridge/maintenance/full_views.py",
        (("is_stale=name in fresh or view.is_stale(rows)", "is_stale=name in fresh"),),
        among=_FULL,
        start=649,
    ),
    Mutant(
        "a recomputation reflects the epoch that records it",
        "spark_bridge/maintenance/full_views.py",
        (("        version = work.result()\n", "        version = replace(work.result(), reflects_epoch=1 << 62)\n"),),
        among=_FULL,
        start=16,
    ),
    Mutant(
        "a full view is shown before its first recomputation",
        "spark_bridge/maintenance/full_views.py",
        (("is_shown=name not in fresh,", "is_shown=recorded is not None,"),),
        among=_FULL,
        start=213,
    ),
    Mutant(
        "a mark does not wait for the epoch that shows what a view lacked",
        "actors/coordination/caught_up.py",
        (("        if self._backfilling and not backfilling:\n", "        if False:\n"),),
        among=_FULL,
        start=643,
    ),
    Mutant(
        "staged rows are committed at any age",
        "state/tables/staging_age.py",
        (("    if age > _MOST_AGE:\n", "    if False:\n"),),
        among="'CLOCK(691200)' in repr(scenario)",
        start=1760,
    ),
    Mutant(
        "a commit leaves its staged rows out",
        "state/lance/lance_store.py",
        (
            (
                "new = staged_fragments([staged.content for staged in delta.staged], self._clock)",
                "new = staged_fragments([staged.content for staged in delta.staged[1:]], self._clock)",
            ),
        ),
        among=_ON_LANCE,
        start=792,
    ),
    Mutant(
        "the name of a commit is that of the last version",
        "state/lance/lance_store.py",
        (("self._dataset.read_transaction(version)", "self._dataset.read_transaction(self._version)"),),
        among=_ON_LANCE,
        start=5_003,
    ),
)
