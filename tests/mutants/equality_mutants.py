"""Deliberate faults in the equality of rows and values, and in the names of columns."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEXTS = "state/equality/value_texts.py"
_SPECIAL = "tests/state/equality/test_special_values.py"

EQUALITY_MUTANTS = (
    Mutant(
        "both zeros are identical",
        "state/equality/row_identity.py",
        (
            (
                "    return column.view(_BITS[data_type])",
                "    return pc.add(column, pa.scalar(0, data_type)).view(_BITS[data_type])",
            ),
        ),
        shown_by=_SPECIAL,
    ),
    Mutant(
        "a NaN is identical only to one with the same bits",
        "state/equality/row_identity.py",
        (("    if pc.any(is_nan).as_py():\n", "    if False:\n"),),
        shown_by=_SPECIAL,
    ),
    Mutant(
        "the zeros within an array name two groups",
        _TEXTS,
        (("value_texts(column.flatten(), equality)", "value_texts(column.flatten(), Equality.IDENTITY)"),),
        shown_by=_SPECIAL,
    ),
    Mutant(
        "a time in a far year has the text that Arrow formats",
        _TEXTS,
        (
            ("    if _are_usual(numbers, years):\n", "    if True:\n"),
            ('times = column.cast(pa.timestamp("us"))\n', 'times = column.cast(pa.timestamp("us", data_type.tz))\n'),
        ),
        shown_by=_SPECIAL,
    ),
    Mutant(
        "a separator within an element of an array ends it",
        _TEXTS,
        (("pc.if_else(whole.is_valid(), escaped(parts),", "pc.if_else(whole.is_valid(), parts,"),),
        shown_by=_SPECIAL,
    ),
    Mutant(
        "rows of an epoch are compared by SQL equality",
        "spark_bridge/changes/equal_rows.py",
        (
            (
                "kinds_of(rows.drop_columns(WEIGHT_FIELD.name))",
                "group_kinds(rows.drop_columns(WEIGHT_FIELD.name))",
            ),
            (
                "from state.equality.row_identity import Kinds, kinds_of\n",
                "from state.equality.row_identity import Kinds, kinds_of\n"
                "from state.equality.value_texts import Equality, joined_texts\n",
            ),
            (
                "def numbered(",
                "def group_kinds(rows: pa.Table) -> Kinds:\n"
                "    texts = joined_texts(rows.columns, Equality.SQL).combine_chunks()\n"
                "    return np.asarray(texts.dictionary_encode().indices, np.int64)\n\n\n"
                "def numbered(",
            ),
        ),
        shown_by="tests/spark_bridge/test_null_elements.py::test_a_replaced_sign_of_a_zero_is_a_change",
    ),
    Mutant(
        "a column with a backtick in its name is stored",
        "actors/schemas/safe_types.py",
        (('in ".`\\0")', 'in ".\\0")'),),
        shown_by="tests/actors/schemas/test_merged_schema.py",
    ),
    Mutant(
        "a NaN of other bits is left out of its group",
        "spark_bridge/ingest/dataset_frame.py",
        ((" if name in schema.names and not _has_nan(each)}", " if name in schema.names}"),),
        shown_by="tests/spark_bridge/ingest/test_wanted_rows.py",
    ),
    Mutant(
        "a condition has all columns of an aggregation",
        "spark_bridge/ingest/dataset_frame.py",
        (("[:_MOST_CONDITIONS]", ""),),
        shown_by="tests/spark_bridge/ingest/test_wanted_rows.py",
    ),
    Mutant(
        "of rows that differ in the sign of a zero any is the first",
        "spark_bridge/plans/total_order.py",
        (("for each in columns if has_floats(each)]", "for each in columns if not each]"),),
        shown_by="tests/spark_bridge/test_special_values.py::test_rows_that_differ_only_in_the_sign_of_a_zero_have_an_order",
    ),
    Mutant(
        "tasks compare rows by SQL equality",
        "spark_bridge/operators/global_window/global_window_operator.py",
        (("enumerate([*values, *texts])", "enumerate(values)"),),
        shown_by="tests/spark_bridge/test_special_values.py::test_rows_that_differ_only_in_the_sign_of_a_zero_have_an_order",
    ),
)
