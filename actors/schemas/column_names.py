"""Names of columns: unique ones for the columns of a file, and their match with the columns of a source.

Every reader uses these functions, for the columns of a file and for the fields of its structs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from actors.file_errors import UnreadableFile, one_line

NameRule: TypeAlias = Literal["any_case", "exact"]
"""The rule that matches the columns of a file with the columns of its source.

`any_case` ignores case, as Spark and DuckDB do; `exact` needs equal names.
Sources of earlier versions match by equal names."""

RESERVED_PREFIX = "__sw_"
_SHOWN_NAMES = 5
_NAME_CHARACTERS = 60
_FOLDS: Mapping[NameRule, Callable[[str], str]] = {"any_case": str.lower, "exact": str}
_UNSTORABLE = str.maketrans(dict.fromkeys(".`\0", "_"))
_UNSTORABLE_FIELD = str.maketrans("\0", "_")


def unique_names(names: Sequence[str], *, are_nested: bool = False) -> list[str]:
    """The names of the columns of a file, each usable in a query and in Lance, and different without case.

    A usable name stays as it is.  The first of several equal names keeps it, and the others get a number.  The cost is
    linear in the number of names.

        ""  →  _c0 (the position)    v, v, V  →  v, v_1, V_2    a.b  →  a_b    __sw_x  →  ___sw_x

    Args:
        names: the names in the order of the file.
        are_nested: True for the fields of a struct, which may have a dot or a backtick.
    """
    unstorable = _UNSTORABLE_FIELD if are_nested else _UNSTORABLE
    # A name that is in the file as such is not given to another column.
    in_file = {name.lower() for name in names}
    used: set[str] = set()
    next_number: dict[str, int] = {}
    unique = []
    for position, given in enumerate(names):
        name = _usable(given.translate(unstorable), position)
        folded = name.lower()
        if folded in used or (name != given and folded in in_file):
            number = next_number.get(folded, 1)
            while f"{folded}_{number}" in used or f"{folded}_{number}" in in_file:
                number += 1
            next_number[folded] = number + 1
            name, folded = f"{name}_{number}", f"{folded}_{number}"
        used.add(folded)
        unique.append(name)
    return unique


def source_names(
    names: Sequence[str], columns: Collection[str], rule: NameRule = "any_case", *, are_nested: bool = False
) -> list[str]:
    """The name that each column of a file has in its source.

    A column of the file and a column of the source match if their names are equal; by the rule `any_case` also if they
    differ by case alone.  A column without a usable name matches by the name that `unique_names` gives it.

    Args:
        names: the names in the order of the file.
        columns: the columns of the source that a file can have.
        rule: see `NameRule`.
        are_nested: True for the fields of a struct, see `unique_names`.

    Returns:
        For each column of the file the name of the matching column of the source, or else its name by `unique_names`.

    Raises:
        UnreadableFile: several columns of the file match one column of the source.
    """
    known = frozenset(columns)
    if known.issuperset(names) and len(frozenset(names)) == len(names):
        return list(names)
    fold = _FOLDS[rule]
    unique = unique_names(names, are_nested=are_nested)
    of_source: dict[str, list[str]] = {}
    for column in columns:
        of_source.setdefault(fold(column), []).append(column)
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions.setdefault(fold(name), []).append(position)
    found = list(unique)
    for folded, same in positions.items():
        matching = of_source.get(folded, [])
        spellings = [names[position] for position in same]
        if known.issuperset(spellings) and len({*spellings}) == len(same):
            for position in same:
                found[position] = names[position]
        elif len(same) > 1:
            # Columns of one name are read if the source has each of them, by the names that they were given.
            if matching and not known.issuperset(unique[position] for position in same):
                raise UnreadableFile(
                    f"the columns {names_text(spellings)} of the file match column {names_text(matching)} of the "
                    "source; rename them"
                )
        else:
            position = same[0]
            if not matching and fold(unique[position]) not in positions:
                matching = of_source.get(fold(unique[position]), [])
            if len(matching) > 1:
                raise UnreadableFile(
                    f"column {names_text(spellings)} of the file matches the columns {names_text(matching)} of the "
                    "source; rename it"
                )
            if matching:
                found[position] = matching[0]
    return found


def renamed_columns(names: Sequence[str], given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The columns of a file that have got another name in their source, each with both names.

    Args:
        names: the names in the order of the file.
        given: what `unique_names` or `source_names` returns for them.
    """
    return tuple((name, new) for name, new in zip(names, given, strict=True) if name.lower() != new.lower())


def names_text(names: Sequence[str]) -> str:
    """The first of some names of columns, for a message; with quotes around one that begins or ends with a space."""
    shown = ", ".join(_shown(name) for name in names[:_SHOWN_NAMES])
    return (shown + (", …" if len(names) > _SHOWN_NAMES else "")) or "no columns"


def _shown(name: str) -> str:
    return one_line(name if name and name == name.strip() else repr(name), _NAME_CHARACTERS)


def _usable(name: str, position: int) -> str:
    if not name.strip():
        return f"_c{position}"
    return f"_{name}" if name.lower().startswith(RESERVED_PREFIX) else name
