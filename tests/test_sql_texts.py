"""Names and values get into an SQL text through one function for each dialect and kind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.repository import ONE_PROCESS, REPOSITORY, trees

pytestmark = ONE_PROCESS

# Spark's names; Lance's values and names; DuckDB's values and names, twice; DataFusion's names of Delta tables.
QUOTING = {
    "actors/schemas/ddl.py": {"quoted_name"},
    "state/tables/row_selection.py": {"quoted", "quoted_column"},
    "slackwater/verification/duckdb_files.py": {"literal", "quoted"},
    "slackwater/plugins/serve/value_types.py": {"quoted"},
    "slackwater/plugins/publish/delta_table.py": {"_quoted"},
}
# Texts of this package, without a part from elsewhere: names of a module's own catalog, codecs, and numbers.
OWN_TEXTS = {
    "slackwater/confinement/confined_duckdb.py",
    "slackwater/plugins/serve/catalog_database.py",
    "slackwater/plugins/serve/catalog_tables.py",
    "slackwater/plugins/serve/engine.py",
    "state/lance/lance_store.py",
}
_VALUE = "\0"
_IN_QUOTES = re.compile(
    rf"`{_VALUE}`(\.|\s*(=|<|>|IN\b|IS\b))|(=|<|>|\(|\[)\s*'{_VALUE}|\b(SELECT|FROM|BY|TABLE|VIEW)\b[^`'\"]*[`\"]{_VALUE}"
)
_DOUBLED = re.compile(r"""replace\((?:"'", "''"|"`", "``"|'"', '""')\)""")


def _templates(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of each f-string, with a sign for each value that is not a number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else _sign(part) for part in node.values)
            yield node.lineno, "".join(parts)


def _sign(part: ast.expr) -> str:
    assert isinstance(part, ast.FormattedValue)
    is_hex = isinstance(part.value, ast.Call) and ast.unparse(part.value.func).endswith(".hex")
    return "0" if is_hex or part.format_spec is not None else _VALUE


def test_no_sql_text_quotes_a_value_by_itself() -> None:
    found = [
        f"{module}:{line}: {text!r}"
        for module, tree in trees().items()
        if str(module) not in OWN_TEXTS | QUOTING.keys()
        for line, text in _templates(tree)
        if _IN_QUOTES.search(text)
    ]
    assert found == []


def test_only_quoting_functions_double_quotes() -> None:
    found = {str(module) for module in trees() if _DOUBLED.search((REPOSITORY / module).read_text(encoding="utf-8"))}
    assert found <= QUOTING.keys()


def test_the_quoting_functions_are_there() -> None:
    by_name = {str(module): tree for module, tree in trees().items()}
    for module, names in QUOTING.items():
        assert names <= {node.name for node in ast.walk(by_name[module]) if isinstance(node, ast.FunctionDef)}, module
