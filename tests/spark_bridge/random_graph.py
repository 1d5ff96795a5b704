"""Random graphs of views: every view has the columns k (text), n, s, lo, hi and c (numbers), so each can read each.

A query may group within itself, also below a projection, may join two views, or one with itself, or compare rows
with the value of a subquery, and may have windows or limits over either.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_bridge.plans.view_definition import ViewDefinition

_KEYS_OF_ROWS = ["k", "k", "upper(k)", "CAST(g AS string)", "CAST(day AS string)", "CAST(x AS string)"]
_KEYS_OF_VIEWS = ["k", "k", "upper(k)", "CAST(n % 3 AS string)", "CAST(c AS string)", "CAST(lo AS string)"]
_OF_ROWS = {
    "n": ["count(*)", "count(x)", "count_if(b)", "count(*) FILTER (WHERE i > 0)"],
    "s": ["sum(i)", "sum(g)", "CAST(sum(p) AS bigint)", "bit_xor(i)", "sum(i) FILTER (WHERE b)"],
    "lo": ["min(i)", "CAST(min(g) AS bigint)", "min(i) FILTER (WHERE g > 1)", "CAST(percentile(i, 0.5) AS bigint)"],
    "hi": ["max(i)", "CAST(max(length(k)) AS bigint)", "max(i) - min(i)", "CAST(avg(i) AS bigint)"],
    "c": ["count(DISTINCT g)", "count(DISTINCT i % 7) FILTER (WHERE b)", "count(*)", "CAST(max(i) AS bigint)"],
}
_OF_VIEWS = {
    "n": ["count(*)", "sum(n)", "count(lo)", "sum(n) FILTER (WHERE s > 0)"],
    "s": ["sum(s)", "sum(n)", "bit_xor(s)", "CAST(avg(s) AS bigint)"],
    "lo": ["min(lo)", "min(s)", "CAST(percentile(n, 0.5) AS bigint)"],
    "hi": ["max(hi)", "max(n)", "sum(hi) - sum(lo)"],
    "c": ["count(DISTINCT c)", "sum(c)", "count(*)", "count(DISTINCT k, n)"],
}
_CONDITIONS_OF_ROWS = ["b", "g > 1", "i % 3 > 0", "k <> 'UA'"]
_CONDITIONS_OF_VIEWS = ["n > 1", "s > 0 OR s IS NULL", "k IS NOT NULL", "lo < hi"]
_HAVING = ["count(*) > 1", "min(lo) IS NOT NULL", "sum(n) > 2"]
_PROJECTIONS = [
    "SELECT k, n + 1 AS n, s, lo, hi, c FROM {}",
    "SELECT upper(k) AS k, n, -s AS s, hi AS lo, lo AS hi, c FROM {}",
    "SELECT k, n, s, lo, hi, w AS c FROM {} LATERAL VIEW explode(array(n, c)) e AS w",
]
_JOINED = [
    "SELECT a.k, a.n, b.s, a.lo, b.hi, a.c FROM {0} a JOIN {1} b ON a.k = b.k AND a.n <= b.n",
    "SELECT a.k, a.n, b.s, a.lo, b.hi, b.c FROM {0} a LEFT JOIN {1} b ON a.k = b.k AND a.c = b.c",
    "SELECT b.k, a.n, b.s, a.lo, b.hi, b.c FROM {0} a RIGHT JOIN {1} b ON a.n = b.n AND a.k <=> b.k",
    "SELECT coalesce(a.k, b.k) AS k, a.n, b.s, a.lo, b.hi, a.c FROM {0} a FULL JOIN {1} b ON a.c = b.c AND a.k = b.k",
    "SELECT * FROM {0} a WHERE EXISTS (SELECT 1 FROM {1} b WHERE a.k = b.k AND b.s > a.s)",
    "SELECT * FROM {0} a WHERE NOT EXISTS (SELECT 1 FROM {1} b WHERE a.n = b.n)",
    "SELECT a.k, a.n, (SELECT sum(b.s) FROM {1} b WHERE b.k = a.k) AS s, a.lo, a.hi, a.c FROM {0} a",
    "SELECT * FROM {0} WHERE s >= (SELECT avg(s) FROM {1}) OR n > (SELECT max(n) FROM {1})",
    "SELECT * FROM {0} WHERE c = (SELECT max(c) FROM {1})",
    "SELECT k, n, s - (SELECT min(s) FROM {1}) AS s, lo, hi, c FROM {0} WHERE EXISTS (SELECT 1 FROM {1} WHERE n > 2)",
    "SELECT k, n, a.s, lo, hi, m AS c FROM {0} a JOIN (SELECT sum(n) AS m FROM {1} HAVING count(*) > 1) b ON a.n < b.m",
]
_WINDOWED = [
    "SELECT k, CAST(row_number() OVER (PARTITION BY k ORDER BY s, n) AS bigint) AS n, s, lo, hi, c FROM {}",
    "SELECT k, n, sum(s) OVER (PARTITION BY k ORDER BY n) AS s, lo, hi, c FROM {}",
    "SELECT k, n, s, lag(lo) OVER (PARTITION BY k, c ORDER BY hi) AS lo, "
    "lead(hi, 2) OVER (PARTITION BY k ORDER BY lo) AS hi, c FROM {}",
    "SELECT k, n, s, lo, hi, c FROM (SELECT *, rank() OVER (PARTITION BY c ORDER BY s DESC) AS position FROM {}) "
    "WHERE position <= 2",
    "SELECT k, n, s, min(lo) OVER (PARTITION BY k) AS lo, max(hi) OVER (PARTITION BY k ORDER BY n "
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS hi, c FROM {}",
    "SELECT k, first_value(n) OVER (PARTITION BY k ORDER BY c) AS n, s, lo, hi, c FROM {}",
    "SELECT k, count(*) AS n, sum(s) AS s, min(lo) AS lo, max(hi) AS hi, count(DISTINCT c) AS c FROM {} "
    "GROUP BY k, session_window(timestamp_seconds(s), '9 seconds')",
    "SELECT k, CAST(row_number() OVER (ORDER BY s, n) AS bigint) AS n, s, lo, hi, c FROM {}",
    "SELECT k, n, sum(n) OVER (ORDER BY s) AS s, lo, max(hi) OVER () AS hi, c FROM {}",
    "SELECT k, n, s, lo, hi, c FROM {} ORDER BY hi, k OFFSET 3",
    "SELECT k, n, s, lo, hi, c FROM {} ORDER BY s DESC, n LIMIT 5",
    "SELECT k, n, s, lo, hi, c FROM {} ORDER BY lo NULLS LAST, k LIMIT 6 OFFSET 2",
]
_FEWEST = 2
_ROWS = "SELECT k, CAST(1 AS bigint) AS n, i AS s, CAST(g AS bigint) AS lo, i AS hi, i % 5 AS c FROM t"


@dataclass
class RandomGraph:
    """A graph that grows.

    Attributes:
        views: the definitions; a view comes after those that it reads.

    Args:
        chance: decides everything.
        is_keyed: whether the source has a key, so that the rows of each view over it are stored.
    """

    chance: random.Random
    is_keyed: bool = False
    views: list[ViewDefinition] = field(default_factory=list)
    _stored: set[str] = field(default_factory=set)
    _joined: set[str] = field(default_factory=set)
    _reads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _made: int = 0

    def grow(self, *, is_late: bool = False) -> None:
        """Adds a view over the source, or over one or two views.

        Args:
            is_late: whether it is declared after rows have come; then it reads stored views, which need no history.
        """
        chance, name = self.chance, f"v{self._made}"
        self._made += 1
        parents: tuple[str, ...] = ()
        nested = joined = windowed = False
        if not is_late and (len(self.views) < 2 or chance.random() < 0.15):
            grouped = chance.random() < 0.8
            query = _grouped("t", _OF_ROWS, _KEYS_OF_ROWS, _CONDITIONS_OF_ROWS, [], chance) if grouped else _ROWS
            if grouped and chance.random() < 0.4:
                query = _grouped(f"({query})", _OF_VIEWS, _KEYS_OF_VIEWS, _CONDITIONS_OF_VIEWS, _HAVING, chance)
        else:
            names = [each.name for each in self.views if not is_late or each.name in self._stored]
            # A join of joins has too many rows.
            narrow = [each for each in names if each not in self._joined]
            joined = bool(narrow) and chance.random() < 0.3
            if joined:
                parents = chance.choice(narrow), chance.choice(narrow)
                relation = f"({chance.choice(_JOINED).format(*parents)})"
            else:
                parents = self._parents(names)
                relation = parents[0] if len(parents) == 1 else _union(parents)
            windowed = chance.random() < 0.25
            if windowed:
                relation = f"({chance.choice(_WINDOWED).format(relation)})"
            nested = chance.random() < 0.25
            if nested:
                within = _grouped(relation, _OF_VIEWS, _KEYS_OF_VIEWS, _CONDITIONS_OF_VIEWS, _HAVING, chance)
                relation = f"({within})" if chance.random() < 0.7 else f"({within} UNION ALL {within})"
            grouped = chance.random() < 0.6
            query = (
                _grouped(relation, _OF_VIEWS, _KEYS_OF_VIEWS, _CONDITIONS_OF_VIEWS, _HAVING, chance)
                if grouped
                else chance.choice(_PROJECTIONS).format(relation) + _where(_CONDITIONS_OF_VIEWS, chance)
            )
        if self.is_keyed or grouped or nested or joined or windowed or self._stored.intersection(parents):
            self._stored.add(name)
        if joined or self._joined.intersection(parents):
            self._joined.add(name)
        self._reads[name] = parents
        self.views.append(ViewDefinition(name, query))

    def prune(self) -> str | None:
        """Takes out a view that no other one reads, and returns its name; None if few views are left."""
        read = {parent for each in self.views for parent in self._reads[each.name]}
        free = [each for each in self.views if each.name not in read]
        if len(self.views) <= _FEWEST:
            return None
        gone = self.chance.choice(free)
        self.views.remove(gone)
        return gone.name

    @property
    def has_stored(self) -> bool:
        """Whether a view can be added late."""
        return any(each.name in self._stored for each in self.views)

    def _parents(self, names: Sequence[str]) -> tuple[str, ...]:
        """One view; or two, of which both or none are read as stored: others cannot be mixed."""
        first, second = self.chance.choice(names), self.chance.choice(names)
        is_pair = first != second and (first in self._stored) == (second in self._stored)
        return (first, second) if is_pair and self.chance.random() < 0.4 else (first,)


def _grouped(
    relation: str,
    calls: dict[str, list[str]],
    keys: Sequence[str],
    conditions: Sequence[str],
    having: Sequence[str],
    chance: random.Random,
) -> str:
    key = chance.choice(keys) if chance.random() < 0.9 else None
    values = ", ".join(f"{chance.choice(choices)} AS {name}" for name, choices in calls.items())
    query = f"SELECT {key or 'CAST(NULL AS string)'} AS k, {values} FROM {relation}{_where(conditions, chance)}"
    if key is None:
        return query
    query += f" GROUP BY {key}"
    return f"{query} HAVING {chance.choice(having)}" if having and chance.random() < 0.25 else query


def _where(conditions: Sequence[str], chance: random.Random) -> str:
    return f" WHERE {chance.choice(conditions)}" if chance.random() < 0.3 else ""


def _union(parents: Sequence[str]) -> str:
    return f"({' UNION ALL '.join(f'SELECT * FROM {each}' for each in parents)})"
