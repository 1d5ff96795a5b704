"""Faults of the format number of a root, of the capabilities of its store, and of the identity of objects."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CAPABILITY_MUTANTS = (
    Mutant(
        "a second probe gives a root another identity",
        "state/capabilities/store_record.py",
        (("before.identity if before is not None", "before.identity if before is None"),),
        shown_by="tests/state/capabilities/test_probe.py",
    ),
    Mutant(
        "a root of an older format is opened",
        "state/lance/store_format.py",
        (("    if int(found) < FORMAT_VERSION:\n", "    if int(found) < 0:\n"),),
        shown_by="tests/state/lance/test_store_format.py::"
        "test_a_root_of_another_format_is_refused_with_both_versions_and_the_next_step",
    ),
    Mutant(
        "a root of another build is to be read by the version that refuses it",
        "state/lance/store_format.py",
        (('if writer == version("slackwater"):', "if not writer:"),),
        shown_by="tests/state/lance/test_store_format.py::"
        "test_the_next_step_names_the_build_if_another_build_of_this_version_wrote_the_root",
    ),
    Mutant(
        "a table gets a field, and the format keeps its number",
        "state/tables/tables.py",
        (("        found=pa.int64(),\n", "        found=pa.int64(),\n        errors=pa.int64(),\n"),),
        shown_by="tests/state/test_stored_formats.py",
    ),
    Mutant(
        "a store that lets a late writer replace an object is accepted",
        "state/capabilities/probe.py",
        (
            ("        if late:\n", "        if late is True:\n"),
            ("        if len(won) > 1:\n", "        if len(won) > 9:\n"),
        ),
        shown_by="tests/state/capabilities/test_probe.py",
    ),
    Mutant(
        "an etag without quotes is another version",
        "state/objects/etag.py",
        (
            ("    if len(opaque) >= 2 and opaque[0] == opaque[-1] == _QUOTE:\n", "    if len(opaque) < 0:\n"),
            ("    if pc.all(is_quoted).as_py() is not False:\n", "    if True:\n"),
        ),
        shown_by="tests/state/objects/test_etag.py",
    ),
    Mutant(
        "a local file that returns with its old time is the old version",
        "state/objects/local_identity.py",
        (("if self.born_us else", "if not self.mode else"),),
        shown_by="tests/state/objects/test_local_identity.py",
    ),
    Mutant(
        "bytes that are delivered again after a deletion are not read",
        "state/tables/fingerprint.py",
        (("    if is_deleted:\n", "    if is_deleted and not is_same:\n"),),
        shown_by="tests/actors/listing/test_run_deletions.py",
    ),
    Mutant(
        "a deleted object in a listing that lags is read again",
        "state/tables/fingerprint.py",
        (("return None if delivery == deleted else delivery", "return delivery"),),
        shown_by="tests/actors/listing/test_run_deletions.py",
    ),
    Mutant(
        "a file that vanished by itself and is back is read again",
        "actors/listing/list_executor.py",
        (
            (
                "        if self._removes:\n            self._names.seen.set_deleted",
                "        if True:\n            self._names.seen.set_deleted",
            ),
        ),
        shown_by="tests/actors/listing/test_run_deletions.py",
    ),
    Mutant(
        "a name that returns before a listing lacks it is skipped by a digest",
        "actors/listing/list_executor.py",
        (
            (
                "        # The next listing may show another object with the same etag, and so the same digest.\n"
                "        self._names.digests.forget()\n",
                "",
            ),
        ),
        shown_by="tests/actors/listing/test_run_deletions.py",
    ),
    Mutant(
        "an unread object with the same bytes is deleted",
        "state/removal/objects.py",
        (("        if is_later or not same_etag", "        if not same_etag"),),
        shown_by="tests/actors/objects/test_delivered_again.py",
    ),
    Mutant(
        "a delivery that is read again takes the version of the first one",
        "slackwater/running/delivered_versions.py",
        (('    if is_delivery(row["version"]):\n        return True\n', ""),),
        shown_by="tests/slackwater/running/test_delivered_versions.py",
    ),
    Mutant(
        "a new root is created on a store without a capability",
        "state/capabilities/store_record.py",
        (("    if probed.missing and not exists():\n", "    if probed.missing and exists() is None:\n"),),
        shown_by="tests/slackwater/running/test_new_root.py",
    ),
    Mutant(
        "a new table is created without a probe of its store",
        "slackwater/plugins/publish/publisher.py",
        (("            require_target_store(self.target, self.clock)\n", "            pass\n"),),
        shown_by="tests/slackwater/plugins/publish/test_target_store.py",
    ),
    Mutant(
        "the probe of a store ends with the first answer that is lost",
        "state/capabilities/probe.py",
        (("        except StorageUnavailableError:\n", "        except NotImplementedError:\n"),),
        shown_by="tests/state/capabilities/test_probe.py",
    ),
)
