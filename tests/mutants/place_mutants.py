"""Deliberate faults in the comparison of places, and in the pause of a source that meets a table."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_DIRECTORY = "state/places/directory_place.py"
_BUCKET = "state/places/bucket_place.py"
_TABLE = "slackwater/places/overlap_table.py"
_WATCH = "slackwater/places/place_watch.py"
_FOREIGN = "actors/sources/foreign_tables.py"
_LIST = "actors/listing/list_executor.py"
_PLACES = "tests/state/places/test_place.py"
_OVERLAPS = "tests/slackwater/places/test_overlap_table.py"
_PAUSES = "tests/actors/listing/test_foreign_tables.py"
_REFUSALS = "tests/actors/listing/test_refusals.py"
_FETCHES = "tests/actors/fetching/test_fetch_executor.py"

PLACE_MUTANTS = (
    Mutant(
        "files below a hidden directory are read",
        "actors/sources/path_filter.py",
        (("        return any(map(self._hides_below, directories))\n", "        return False\n"),),
        shown_by="tests/actors/sources/test_path_filter.py",
    ),
    Mutant(
        "a page with a hidden directory is not searched for it",
        "actors/sources/path_filter.py",
        (("bool(_IS_FIRST[names[after_slash]].any()) or ", ""),),
        shown_by="tests/actors/sources/test_path_filter.py",
    ),
    Mutant(
        "an older source hides directories",
        "actors/sources/source.py",
        (('hides_directories=recorded.get("rules", 1) > 1)', "hides_directories=True)"),),
        shown_by="tests/actors/sources/test_source.py",
    ),
    Mutant(
        "a queue belongs to every root of one URL",
        "actors/notifications/message_queue.py",
        (("return self.root == other.root and is_identical", "return self.root == other.root"),),
        shown_by="tests/actors/notifications/test_message_queue.py::"
        "test_a_root_of_the_same_url_with_another_identity_is_refused",
    ),
    Mutant(
        "a newline of a text from data begins a line of its own",
        "slackwater/cli/terminal/output.py",
        (("Text(visible(line))", 'Text(visible(line, keep="\\n"))'),),
        shown_by="tests/slackwater/cli/terminal/test_output.py::test_what_a_file_contains_does_not_control_the_terminal",
    ),
    Mutant(
        "a marker of others controls the terminal",
        "state/visible.py",
        (("return visible(text if len(text)", "return str(text if len(text)"),),
        shown_by="tests/state/places/test_marker.py::test_a_marker_is_small_and_printable",
    ),
    Mutant(
        "a pipe with the name of a small file keeps its reader waiting",
        "state/objects/stored_object.py",
        (("            raise _not_regular(path, file.mode)\n        _req", "            pass\n        _req"),),
        shown_by="tests/state/objects/test_stored_object.py::test_a_pipe_with_the_name_of_a_small_file_is_named",
    ),
    Mutant(
        "a refused listing is made again at once",
        _LIST,
        (("            self._pace.rest_until(now_s + self.retry_s)\n", ""),),
        shown_by=f"{_REFUSALS}::test_a_refused_listing_pauses_the_source_and_is_tried_again_with_growing_pauses",
    ),
    Mutant(
        "the pages of a refused listing count as a whole listing",
        _LIST,
        (
            (
                "            self._foreign.drop_listing()\n",
                "            yield from self._pages.end_listing(now_s)\n"
                "            asked = self._names.missing.ask(self._writer.epoch, self._tally.listings)\n"
                "            return [*asked, *(yield from self._continue(now_s))]\n",
            ),
        ),
        shown_by=f"{_REFUSALS}::test_a_listing_that_was_refused_after_some_pages_removes_no_file",
    ),
    Mutant(
        "a refused source is waited for",
        "actors/sources/refusals.py",
        (("any(each.times >= _LASTS_FROM for", "any(each.times < 0 for"),),
        shown_by=f"{_REFUSALS}::test_a_source_that_is_refused_three_times_in_a_row_is_not_waited_for",
    ),
    Mutant(
        "the files of a refused source are asked for one after the other",
        "actors/fetching/read_scheduler.py",
        (("        if progress.file.source in self._rests_until_s:\n            return False\n", ""),),
        shown_by=f"{_FETCHES}::test_files_of_a_refused_source_wait_with_growing_pauses_and_those_of_others_are_read",
    ),
    Mutant(
        "a run starts without a source that no run has read",
        "slackwater/places/source_access.py",
        (("    if source.name not in committed:\n", "    if source.name == error:\n"),),
        shown_by="tests/slackwater/places/test_source_access.py",
    ),
    Mutant(
        "the host of a file URL is a part of its path",
        "state/location.py",
        (('host, slash, path = rest[2:].partition("/") if rest.startswith("//") else', "host, slash, path ="),),
        shown_by="tests/state/test_location.py",
    ),
    Mutant(
        "symbolic links are not resolved",
        _DIRECTORY,
        (("_split(os.path.realpath(path))", "_split(os.path.normpath(path))"),),
        shown_by=f"{_PLACES}::test_a_link_that_is_made_later_changes_the_place",
    ),
    Mutant(
        "a mount below a directory does not belong to it",
        _DIRECTORY,
        (("else (((), self.region), *self.mounted)", "else (((), self.region),)"),),
        shown_by=f"{_PLACES}::test_a_mount_below_a_place_belongs_to_it",
    ),
    Mutant(
        "a mount that another mount hides counts",
        _DIRECTORY,
        (
            (
                "mounts.get(_mount_of(_joined(existing)))",
                "max(mounts.values(), key=lambda each: len(each[2]) if existing[: len(each[2])] == each[2] else -1)",
            ),
        ),
        shown_by=f"{_PLACES}::test_a_mount_that_is_hidden_by_another_one_does_not_count",
    ),
    Mutant(
        "localhost and 127.0.0.1 are two servers",
        _BUCKET,
        (("    if _is_this_machine(host):\n", "    if not host:\n"),),
        shown_by=f"{_PLACES}::test_every_spelling_of_an_endpoint_is_one_server",
    ),
    Mutant(
        "a place above another place is apart from it",
        _TABLE,
        (("if relation is Relation.APART and not", "if relation in (Relation.APART, Relation.ABOVE) and not"),),
        shown_by=f"{_OVERLAPS}::test_overlapping_places_are_refused_by_both_names_the_reason_and_the_next_step",
    ),
    Mutant(
        "two sources with `after` share a place",
        _TABLE,
        (("if one.changes_files or other.changes_files:", "if one.changes_files and other.changes_files:"),),
        shown_by=f"{_OVERLAPS}::test_two_sources_share_a_place_if_neither_changes_files_and_their_patterns_differ",
    ),
    Mutant(
        "a publication writes to the present target of its link",
        _WATCH,
        (("if place.address and now != place.address:", "if not place.address:"),),
        shown_by="tests/slackwater/places/test_published_places.py::"
        "test_a_link_that_leads_into_a_source_during_a_run_pauses_the_publication",
    ),
    Mutant(
        "the files of a page are handed on before the page is searched for tables",
        _LIST,
        (
            (
                "        self._foreign.take_page(page, batches)\n        if self._foreign.paused is not None:\n",
                "        was_paused = self._foreign.paused is not None\n"
                "        self._foreign.take_page(page, batches)\n        if was_paused:\n",
            ),
        ),
        shown_by=f"{_PAUSES}::test_a_table_in_the_listing_pauses_the_source_before_a_file_of_the_page_is_handed_on",
    ),
    Mutant(
        "a pause ends with any next listing",
        _FOREIGN,
        (("        if not self._is_met:\n            self.paused = None", "        self.paused = None"),),
        shown_by=f"{_PAUSES}::test_a_pause_is_told_once_and_ends_with_a_listing_without_the_table",
    ),
    Mutant(
        "a listing of a paused source confirms missing files",
        _LIST,
        (
            (
                "        if self._foreign.paused is not None:\n"
                "            return (yield from self._end_paused_listing(now_s))\n",
                "",
            ),
        ),
        shown_by=f"{_PAUSES}::test_no_missing_file_leaves_the_views_while_the_source_is_paused",
    ),
    Mutant(
        "a paused source retracts the rows of missing files",
        _LIST,
        (
            (
                "if self._guard.paused or self._foreign.paused is not None:\n            found",
                "if self._guard.paused:\n            found",
            ),
        ),
        shown_by=f"{_PAUSES}::test_an_answer_about_missing_files_that_comes_late_removes_nothing",
    ),
    Mutant(
        "a marker is written over an object of another program",
        "state/places/marker.py",
        (
            (
                "            create(client, location, MARKER, marker.to_json())\n",
                "            obstore.put(client, MARKER, marker.to_json())  # noqa: TID251\n",
            ),
        ),
        shown_by="tests/state/places/test_marker.py::test_an_object_of_another_program_is_not_overwritten",
    ),
)
