"""Random queries that can be maintained as views."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.spark_bridge.random_calls import Comparison, RandomCall, random_call

_SOURCES = [
    *["t"] * 4,
    "u",
    "(SELECT * FROM t UNION ALL SELECT * FROM u)",
    "(SELECT *, i + 1 AS i1 FROM t WHERE b OR g > 1)",
    "(SELECT * FROM t WHERE b UNION ALL SELECT * FROM t WHERE g = 1)",
]
_EXPLODED = "{} LATERAL VIEW explode(tags) e AS tag"
_GROUPS = [
    *["k", "g", "b", "x", "f", "day", "raw", "p", "w", "upper(k)", "g % 2", "i % 3", "date_trunc('day', at)"],
    *["tags[0]", "coalesce(k, 'none')", "CASE WHEN x > 0 THEN 'up' ELSE k END", "at", "-x", "g + i % 2"],
]
_CONDITIONS = ["b", "g > 1", "x > 0 OR x IS NULL", "k <> 'UA'", "NOT isnan(x)", "id % 3 > 0", "day > date'1970-01-01'"]
_HAVING = ["count(*) > 2", "max(i) > 100", "sum(g) > 0", "count(DISTINCT g) > 1", "bool_or(b)", "min(k) IS NOT NULL"]
_VALUES = [
    *["k", "g", "x * 2", "upper(k)", "x", "-f", "CASE WHEN b THEN p ELSE w END", "date_add(day, g)", "tags", "raw"],
    *["struct(k, g)", "map('k', k)", "coalesce(i, big)", "posexplode_outer(tags) AS (at_{0}, tag_{0})", "hex(raw)"],
]


@dataclass(frozen=True)
class RandomQuery:
    """A query for a view, and the query for Spark's own answer.

    Args:
        text: the query of the view.
        truth: the same query with exact functions in place of sketches.
        key: columns that identify a row of the result; if empty, rows are compared as a multiset.
        compares: column → comparison of its values.
    """

    text: str
    truth: str
    key: Sequence[str]
    compares: dict[str, Comparison]


def random_query(chance: random.Random) -> RandomQuery:
    """A query over `t` and `u`, tables of `random_table`."""
    kind = chance.random()
    if kind < 0.1:
        return _append(chance)
    if kind < 0.16:
        return _distinct_rows(chance)
    return _grouped(chance)


def _source(chance: random.Random, exploded: bool) -> str:
    source = chance.choice(_SOURCES)
    source = _EXPLODED.format(source) if exploded else source
    return f"{source} WHERE {chance.choice(_CONDITIONS)}" if chance.random() < 0.4 else source


def _append(chance: random.Random) -> RandomQuery:
    values = chance.sample(_VALUES, chance.randint(1, 4))
    columns = [
        value.format(at) if "AS (" in value else f"{value} AS c{at}"
        for at, value in enumerate(values)
        if "explode" not in value or not any("explode" in each for each in values[:at])
    ]
    query = f"SELECT {', '.join(columns)} FROM {_source(chance, exploded=False)}"
    return RandomQuery(query, query, [], {})


def _distinct_rows(chance: random.Random) -> RandomQuery:
    values = chance.sample(_GROUPS, chance.randint(1, 3))
    columns = ", ".join(f"{value} AS c{at}" for at, value in enumerate(values))
    query = f"SELECT DISTINCT {columns} FROM {_source(chance, exploded=False)}"
    return RandomQuery(query, query, [], {})


def _grouped(chance: random.Random) -> RandomQuery:
    exploded = chance.random() < 0.15
    choices = [*_GROUPS, "tag", "tag"] if exploded else _GROUPS
    groups = chance.sample(choices, chance.choice([0, 1, 1, 2, 2, 3]))
    calls = [random_call(chance) for _ in range(chance.randint(1, 4))]
    names = [f"a{at}" for at in range(len(calls))]
    key = [f"g{at}" for at in range(len(groups))]
    selected = [f"{group} AS {name}" for group, name in zip(groups, key, strict=True)]
    by = _grouping(chance, groups)
    if any(word in by for word in ("ROLLUP", "CUBE", "SETS")):
        key.append("which")
        selected.append("grouping_id() AS which")
        if chance.random() < 0.3:
            selected.append(f"grouping({groups[0]}) AS whole")
    elif chance.random() < 0.2 and all(call.compares == Comparison.EXACT for call in calls):
        key, selected = [], []
    rest = f" FROM {_source(chance, exploded)}{by}"
    if chance.random() < 0.2:
        rest += f" HAVING {chance.choice(_HAVING)}"
    above = chance.choice(["", "", "", "", "plain", "filter"])
    text, truth = (
        _under(above, f"SELECT {', '.join([*selected, *_named(calls, names, exact)])}{rest}", names)
        for exact in (False, True)
    )
    return RandomQuery(text, truth, key, dict(zip(names, (call.compares for call in calls), strict=True)))


def _named(calls: Sequence[RandomCall], names: Sequence[str], exact: bool) -> list[str]:
    return [f"{call.truth if exact else call.text} AS {name}" for call, name in zip(calls, names, strict=True)]


def _grouping(chance: random.Random, groups: Sequence[str]) -> str:
    if not groups:
        return ""
    listed = ", ".join(groups)
    kind = chance.random()
    if kind < 0.7:
        return f" GROUP BY {listed}"
    if kind < 0.8:
        return f" GROUP BY ROLLUP ({listed})"
    if kind < 0.9:
        return f" GROUP BY CUBE ({listed})"
    return f" GROUP BY GROUPING SETS (({listed}), ({groups[-1]}), ())"


def _under(above: str, query: str, names: Sequence[str]) -> str:
    if above == "plain":
        return f"SELECT *, 'x' AS constant FROM ({query}) AS q"
    if above == "filter":
        return f"SELECT * FROM ({query}) AS q WHERE {names[0]} IS NOT NULL"
    return query
