"""Deliberate faults in branches: what the root keeps, what a branch begins with, comparisons and merges."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_FILES = "state/lance/branch_files.py"
_RECORDS = "state/upkeep/branch_beginning.py"
_BRANCH = "slackwater/branching/branch.py"
_STEPS = "slackwater/branching/branch_steps.py"
_MERGE = "slackwater/branching/merge_steps.py"
_SAME = "slackwater/branching/same_files.py"
_DIFFERENCE = "slackwater/reading/changes/view_difference.py"
_OF_BRANCHES = "tests/slackwater/branching/test_branch.py"
_OF_MERGES = "tests/slackwater/branching/test_merge.py"
_OF_DIFFERENCES = "tests/slackwater/reading/test_root_difference.py"
_BEGINS = f"{_OF_BRANCHES}::test_a_branch_begins_with_an_epoch_and_copies_no_rows"
_TAGS = f"{_OF_BRANCHES}::test_the_tags_of_branches_are_not_those_of_users"
_APART = f"{_OF_BRANCHES}::test_root_and_branch_change_and_vacuum_without_harm_to_each_other"
_MERGED = "'MERGE(' in repr(scenario.story)"

BRANCH_MUTANTS = (
    Mutant(
        "a root does not keep the epoch of a branch",
        "state/tables/records.py",
        (("frozenset(self.tags.values())", 'frozenset(e for t, e in self.tags.items() if "/" not in t)'),),
        among="'BRANCH(' in repr(scenario.story)",
    ),
    Mutant(
        "a branch refers to files before its root notes it",
        _STEPS,
        (
            (
                "        root.note(branch_tag(name), epoch)\n",
                "        files.make(epoch)\n        root.note(branch_tag(name), epoch)\n",
            ),
        ),
        among="'BRANCH(' in repr(scenario.story)",
    ),
    Mutant(
        "a branch that is dropped while it is made stays",
        _STEPS,
        (("    if now is None or now.is_dropping:\n", "    if False:\n"),),
        among="'BRANCH(' in repr(scenario.story)",
        start=997,
    ),
    Mutant(
        "a branch that was begun goes on at another epoch",
        _STEPS,
        (("        epoch = known.epoch\n        if (is", "        epoch = choose()\n        if (is"),),
        among="'BRANCH(' in repr(scenario.story)",
        start=215,
    ),
    Mutant(
        "a branch has all epochs of its root",
        _RECORDS,
        (("if each != first.epoch]", "if each > first.epoch]"),),
        shown_by=_BEGINS,
    ),
    Mutant(
        "a branch has the tags of its root",
        _RECORDS,
        ((", tags={}, views=first.views)", ", views=first.views)"),),
        shown_by=_TAGS,
    ),
    Mutant(
        "a branch has the incomplete views of its root",
        _RECORDS,
        (
            (
                "for name, view in record.views.items() if view.pinned_epoch is None}",
                "for name, view in record.views.items()}",
            ),
        ),
        shown_by=f"{_OF_BRANCHES}::test_a_view_that_catches_up_is_not_in_a_branch",
    ),
    Mutant(
        "the store of a branch is there before it is that of the branch",
        _FILES,
        (
            (
                "            _clone(dataset_location(self._root), dataset_location(self._origin), record.state_version",
                "            for place in (self._origin, self.location):\n"
                "                _clone(dataset_location(self._root), dataset_location(place), record.state_version",
            ),
        ),
        shown_by=_BEGINS,
    ),
    Mutant(
        "the rest of another branch is taken for that of a branch",
        _FILES,
        (("if version != found.version or source", "if source"),),
        shown_by=f"{_OF_BRANCHES}::test_the_rest_of_a_branch_that_has_lived_is_not_a_branch_in_the_making",
    ),
    Mutant(
        "the tag of a branch moves",
        "state/upkeep/tags.py",
        (("        require_free(tags, name)\n", "        pass\n"),),
        shown_by=_TAGS,
    ),
    Mutant(
        "the files of a branch are deleted before the root notes it",
        _STEPS,
        (
            (
                "    root.note(dropping_tag(name), epoch)\n    files.delete_store()\n",
                "    files.delete_store()\n    root.note(dropping_tag(name), epoch)\n",
            ),
        ),
        shown_by=f"{_OF_BRANCHES}::test_a_branch_whose_dropping_died_at_any_step_is_dropped_by_the_next_try",
    ),
    Mutant(
        "a branch with branches is dropped",
        _BRANCH,
        (("        if own:\n", "        if False:\n"),),
        shown_by=f"{_OF_BRANCHES}::test_a_branch_of_a_branch_is_a_branch",
    ),
    Mutant(
        "a part of the store of a branch has to open before it is dropped",
        _BRANCH,
        (
            (
                "if not (known.is_dropping or isinstance(error, StoreNotFoundError)):",
                "if not isinstance(error, StoreNotFoundError):",
            ),
        ),
        shown_by=f"{_OF_BRANCHES}::test_a_branch_whose_store_is_half_deleted_is_dropped_by_the_next_try",
    ),
    Mutant(
        "rows of another dataset are compacted",
        "spark_bridge/datasets/dataset_upkeep.py",
        (("any(file.base_id is not None for file", "any(file.base_id == -1 for file"),),
        shown_by="tests/spark_bridge/datasets/test_cloned_table.py",
    ),
    Mutant(
        "deleted rows of another dataset are looked for in the branch",
        "state/lance/deletion_vector.py",
        (("    if base is not None:", "    if base == -1:"),),
        shown_by="tests/spark_bridge/datasets/test_cloned_table.py",
    ),
    Mutant(
        "a row that is there twice counts once",
        _DIFFERENCE,
        (("np.maximum(sign * more, 0)", "np.clip(sign * more, 0, 1)"),),
        shown_by=f"{_OF_DIFFERENCES}::test_rows_are_compared_as_bags",
    ),
    Mutant(
        "the deletions of a branch are not compared",
        _DIFFERENCE,
        (("if left.deletions(at) != right.deletions(at))", "if False)"),),
        shown_by=f"{_OF_DIFFERENCES}::test_a_branch_is_compared_by_what_was_written_since",
    ),
    Mutant(
        "a merge looks at the files that are half read alone",
        _SAME,
        (
            (
                "            if differing := _first_differing(left, right):",
                "            if (differing := _first_differing(left, right)) and table == 'queue':",
            ),
        ),
        among=_MERGED,
    ),
    Mutant(
        "a merge shows a copy at the version of the branch",
        _MERGE,
        (("            self._copied[path] = target, copied\n", "            self._copied[path] = target, version\n"),),
        among=_MERGED,
    ),
    Mutant(
        "a merge leaves the definitions of internal views behind",
        _MERGE,
        (
            (
                "            if declared_name(each) in names and not is_stored_rows(each):",
                "            if each in names and not is_stored_rows(each):",
            ),
        ),
        among=_MERGED,
    ),
    Mutant(
        "a merge shows views in two steps",
        _MERGE,
        (
            (
                "        self._store.commit(\n            epoch=self._epoch,\n            delta=Delta.merge([self._def",
                "        self._store.amend(views=views)\n"
                "        self._store.commit(\n            epoch=self._epoch,\n            delta=Delta.merge([self._def",
            ),
        ),
        among=_MERGED,
    ),
    Mutant(
        "a merge does not look at the files",
        _SAME,
        (("if differing := _first_differing(left, right):", "if differing := _first_differing(left, left):"),),
        shown_by=f"{_OF_MERGES}::test_roots_that_have_read_other_files_are_not_merged",
    ),
    Mutant(
        "a merge does not look at files that are half read",
        _SAME,
        (('"rows_bad"), "queue": ("row_offset", "rows_bad")}', '"rows_bad")}'),),
        shown_by=f"{_OF_MERGES}::test_a_part_of_a_file_more_is_another_file",
    ),
    Mutant(
        "a merge looks at versions whose rows were removed",
        _SAME,
        (("pc.invert(is_removed))", "True)"),),
        shown_by=f"{_OF_MERGES}::test_version_set_in_the_views_are_not_compared",
    ),
    Mutant(
        "a merge takes rows that the root maintains no longer",
        _MERGE,
        (("if name in self._here.views and self._here.views[name].stopped_epoch is None\n", "if True\n"),),
        shown_by=f"{_OF_MERGES}::test_a_dataset_that_the_root_maintains_no_longer_is_copied",
    ),
    Mutant(
        "a merge takes a dataset of the root for one of the branch with the same name",
        _MERGE,
        (("            if path in begun\n", ""),),
        shown_by=f"{_OF_MERGES}::test_a_dataset_that_root_and_branch_have_made_in_epochs_of_one_number_is_copied",
    ),
    Mutant(
        "a merge takes views that the branch has not changed",
        _MERGE,
        (("if self._differs(self._first, name)}", "if True}"),),
        shown_by=f"{_OF_MERGES}::test_a_view_that_only_the_root_has_changed_stays_as_the_root_has_it",
    ),
    Mutant(
        "a merge leaves the readers of a view behind",
        _MERGE,
        (("shown.intersection(self._there.with_readers(names))", "shown.intersection(names)"),),
        shown_by=f"{_OF_MERGES}::test_a_view_comes_with_its_readers_and_not_without_what_it_reads",
    ),
    Mutant(
        "a merge takes a view over windows that have closed in other epochs",
        _MERGE,
        (("sorted(of_windows.intersection(view.views) - names)", "[]"),),
        shown_by=f"{_OF_MERGES}::test_a_view_over_closed_windows_is_not_taken_without_them",
    ),
    Mutant(
        "a merge looks for windows in the views alone that it takes views over",
        _MERGE,
        (("self._there.with_readers(closing)", "{*closing}"),),
        shown_by=f"{_OF_MERGES}::test_a_view_over_closed_windows_is_not_taken_without_them",
    ),
    Mutant(
        "a merge leaves late rows behind",
        _MERGE,
        (
            (
                "Delta.merge([self._definitions(names, expected).build(), self._late_rows(names).build()])",
                "self._definitions(names, expected).build()",
            ),
        ),
        shown_by=f"{_OF_MERGES}::test_late_rows_come_with_their_view",
    ),
    Mutant(
        "a merge brings back late rows that were cleared",
        _MERGE,
        (("closing, self._began, state", "closing, 0, state"),),
        shown_by=f"{_OF_MERGES}::test_late_rows_come_with_their_view",
    ),
    Mutant(
        "a merge leaves internal views behind",
        _MERGE,
        (
            (
                "taken = {each: view for each, view in self._record.views.items() if declared_name(each) in names}",
                "taken = {each: view for each, view in self._record.views.items() if each in names}",
            ),
        ),
        shown_by=f"{_OF_MERGES}::test_new_views_are_taken_with_their_internal_views_and_outlive_the_branch",
    ),
)
