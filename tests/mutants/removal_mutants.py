"""Deliberate faults in deletions, in the upkeep of published tables, and in the check of indexes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_OBJECTS, _DATASETS = "tests/state/removal/test_objects.py", "tests/state/removal/test_datasets.py"
_UPKEEP = "tests/slackwater/plugins/publish/test_upkeep.py"

REMOVAL_MUTANTS = (
    Mutant(
        "a pin is written through a link in the root",
        "state/removal/objects.py",
        (("    require_own_path(client, evidence.place, name)\n", ""),),
        shown_by=f"{_OBJECTS}::test_a_write_below_a_linked_directory_is_refused[overwrite]",
    ),
    Mutant(
        "a file that replaces a version between its comparison and its deletion is deleted",
        "state/removal/claimed_file.py",
        (("    if is_version(file_at(directory, claim), etag):\n", "    if claim:\n"),),
        shown_by="tests/state/removal/test_claimed_file.py",
    ),
    Mutant(
        "a source reads a file that is being deleted",
        "actors/objects/local_listing.py",
        (("        if is_reserved(entry.name):\n            continue\n", ""),),
        shown_by="tests/actors/objects/test_object_changes.py::"
        "test_a_deletion_on_a_disk_in_which_a_process_was_killed_is_repeated",
    ),
    Mutant(
        "an object is deleted that no record lists",
        "state/removal/evidence.py",
        (("    if not evidence.covers(name):\n", "    if not evidence.covers(name) and not name:\n"),),
        shown_by=_OBJECTS,
    ),
    Mutant(
        "a name leads out of the place of its evidence",
        "state/removal/local_path.py",
        (('{"", ".", ".."}.isdisjoint(parts)', '{""}.isdisjoint(parts)'),),
        shown_by=_OBJECTS,
    ),
    Mutant(
        "a deletion follows a link",
        "state/removal/local_path.py",
        (
            (
                "_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
                "_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
            ),
        ),
        shown_by=_OBJECTS,
    ),
    Mutant(
        "a change of permissions on overlayfs makes another version of a file",
        "state/objects/local_identity.py",
        (('frozenset({"btrfs", "tmpfs"})', 'frozenset({"btrfs", "overlay", "tmpfs"})'),),
        shown_by="tests/state/objects/test_local_identity.py",
    ),
    Mutant(
        "a reader without birth times refuses files that were listed with them",
        "state/objects/local_identity.py",
        (("        return not self.born_us and etag", "        return not self.inode and etag"),),
        shown_by="tests/state/objects/test_local_identity.py",
    ),
    Mutant(
        "the metadata of an Iceberg table has any file deleted",
        "slackwater/plugins/publish/iceberg_table.py",
        (("        keep_metadata_of_others(table)\n", ""),),
        shown_by=_UPKEEP,
    ),
    Mutant(
        "an object that took the place of a copy in the archive is deleted",
        "actors/objects/archive_bucket.py",
        (('if found is None or not same_etag(found["e_tag"], written.etag):', "if found is None:"),),
        shown_by="tests/actors/objects/test_moves.py",
    ),
    Mutant(
        "a pipe in the place of a marker stops a start for good",
        "state/places/marker.py",
        (("content = _local(location) if location.is_local else _remote(location)", "content = _remote(location)"),),
        shown_by="tests/state/places/test_marker.py",
    ),
    Mutant(
        "a vacuum follows a link to another dataset",
        "state/removal/datasets.py",
        (("        require_no_links(evidence.root.path, evidence.path)\n", "        pass\n"),),
        shown_by=_DATASETS,
    ),
    Mutant(
        "a vacuum deletes versions of a dataset that is not one of the root",
        "state/removal/datasets.py",
        (("    if not DATASETS_OF_ROOT.covers(evidence.path):", "    if not evidence.path:"),),
        shown_by=_DATASETS,
    ),
    Mutant(
        "the datasets below a link count as datasets of the root",
        "state/removal/datasets.py",
        (("    if place.is_local:\n        # A link", "    if not place.path:\n        # A link"),),
        shown_by=_DATASETS,
    ),
    Mutant(
        "upkeep of a Delta table follows a link to files of others",
        "state/removal/tables.py",
        (("        require_no_links(place.path)\n", "        pass\n"),),
        shown_by=_UPKEEP,
    ),
    Mutant(
        "a dataset is deleted with the files of others in it",
        "state/removal/names.py",
        ((r'r"|data/[^/]+\.lance"', r'r"|data/.+"'),),
        shown_by=_DATASETS,
    ),
    Mutant(
        "a branch is deleted with the branches and tables below it",
        "state/removal/evidence.py",
        (("return ROOT.covers(name) and ", "return "),),
        shown_by=_DATASETS,
    ),
    Mutant(
        "upkeep of a Delta table deletes files that its log does not name",
        "state/removal/tables.py",
        (("enforce_retention_duration=False, full=False", "enforce_retention_duration=False, full=True"),),
        shown_by=_UPKEEP,
    ),
    Mutant(
        "a checkpoint of a Delta table forgets removed files before they are deleted",
        "state/removal/tables.py",
        (("_MARGIN_HOURS = 7 * 24", "_MARGIN_HOURS = 0"),),
        shown_by=_UPKEEP,
    ),
    Mutant(
        "a file of Parquet is written before the manifest names it",
        "slackwater/plugins/publish/parquet_files.py",
        (("self._note(replace(noted, planned=tuple(paths)))", "self._note(replace(noted, planned=()))"),),
        shown_by=_UPKEEP,
    ),
    Mutant(
        "a cache counts files of others",
        "actors/objects/range_cache.py",
        (("filter(CACHED_RANGES.covers, os.listdir(self._directory))", "os.listdir(self._directory)"),),
        shown_by="tests/actors/objects/test_range_cache.py",
    ),
    Mutant(
        "a pin is deleted that its reader has renewed",
        "state/upkeep/pin.py",
        (("        delete_if(evidence, name, etag, client)\n", "        delete(evidence, [name], client)\n"),),
        shown_by="tests/state/upkeep/test_pin.py",
    ),
    Mutant(
        "rows that an index lacks are not noticed",
        "state/lance/index_check.py",
        (("if missing or wrong else None", "if wrong else None"),),
        shown_by="tests/state/lance/test_index_check.py",
    ),
    Mutant(
        "a condition fails in a dataset with a map of structs",
        "state/lance/filtered_scan.py",
        (("if pa.types.is_map(data_type):", "if False:"),),
        shown_by="tests/state/lance/test_filtered_scan.py",
    ),
    Mutant(
        "a wrong index stays",
        "spark_bridge/datasets/index_audit.py",
        (
            (
                '            dataset.create_scalar_index(column, "BTREE", name=names[column], replace=True)\n',
                "",
            ),
        ),
        shown_by="tests/spark_bridge/datasets/test_index_audit.py",
    ),
)
