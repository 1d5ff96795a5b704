"""Faults of what a root relies on: its format number, the store's abilities, and the identity of objects."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CAPABILITY_MUTANTS = (
    Mutant(
        "a root of an older format is opened",
        "state/lance/store_format.py",
        (("    if int(found) < FORMAT_VERSION:\n", "    if int(found) < 0:\n"),),
        shown_by="tests/state/lance/test_store_format.py::"
        "test_a_root_of_another_format_is_refused_with_both_versions_and_the_next_step",
    ),
    Mutant(
        "a table gets a field, and the format keeps its number",
        "state/tables/tables.py",
        (("        found=pa.int64(),\n", "        found=pa.int64(),\n        errors=pa.int64(),\n"),),
        shown_by="tests/state/test_stored_formats.py",
    ),
)
