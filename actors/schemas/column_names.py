"""Names of columns: names for columns of a file that lack a usable one.

Every reader uses these functions, for the columns of a file and for the fields of its structs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

RESERVED_PREFIX = "__sw_"
_UNSTORABLE = str.maketrans(dict.fromkeys(".`\0", "_"))


def unique_names(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """The names of the columns of a file, each usable in a query and in Lance, and different without case.

    A usable name stays as it is.  The first of several equal names keeps it, and the others get a number.  The cost is
    linear in the number of names.

        ""  →  _c0 (the position)    v, v, V  →  v, v_1, V_2    a.b  →  a_b    __sw_x  →  ___sw_x

    Args:
        names: the names in the order of the file.
        taken: names that the columns must not have, for example those of metadata columns.
    """
    usable = [_usable(name, position) for position, name in enumerate(names)]
    # A name that is in the file as such is not given to another column.
    reserved = {name.lower() for name in usable}
    used = {name.lower() for name in taken}
    next_number: dict[str, int] = {}
    unique = []
    for name in usable:
        folded = name.lower()
        if folded in used:
            number = next_number.get(folded, 1)
            while f"{folded}_{number}" in used or f"{folded}_{number}" in reserved:
                number += 1
            next_number[folded] = number + 1
            name, folded = f"{name}_{number}", f"{folded}_{number}"
        used.add(folded)
        unique.append(name)
    return unique


def _usable(name: str, position: int) -> str:
    name = name.translate(_UNSTORABLE)
    if not name.strip():
        return f"_c{position}"
    return f"_{name}" if name.startswith(RESERVED_PREFIX) else name
