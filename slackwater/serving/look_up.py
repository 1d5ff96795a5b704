"""Look-up of one group by its key: `SELECT a, b FROM view WHERE key = value`, which the index of the keys answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from slackwater.serving.sql_text import Token, pieces, remembered


@dataclass(frozen=True)
class LookUp:
    """A question that may be a look-up; the view decides.

    Args:
        view: the name of the view, in small letters unless quoted.
        columns: the wanted columns; empty for all.
        values: column → its value: a literal or a parameter.
    """

    view: str
    columns: tuple[str, ...]
    values: Mapping[str, Token]


@remembered
def look_up_of(text: str) -> LookUp | None:
    """The look-up that a text is; None for any other question."""
    words = _Words(pieces(text))
    if not words.skips("SELECT"):
        return None
    columns = [] if words.skips("*") else words.names()
    if not words.skips("FROM"):
        return None
    view = words.name()
    if view == "public" and words.skips("."):
        view = words.name()
    if not view or not words.skips("WHERE"):
        return None
    values: dict[str, Token] = {}
    while (column := words.name()) and words.skips("=") and (value := words.value()) and column not in values:
        values[column] = value
        if words.is_over:
            return LookUp(view, tuple(columns), values) if columns is not None else None
        if not words.skips("AND"):
            return None
    return None


class _Words:
    """The tokens of a text, from the first to the last."""

    def __init__(self, words: Sequence[Token]) -> None:
        self._words, self._at = words, 0

    @property
    def is_over(self) -> bool:
        return self._at == len(self._words)

    def skips(self, text: str) -> bool:
        if self.is_over or self._words[self._at].upper != text:
            return False
        self._at += 1
        return True

    def name(self) -> str:
        if self.is_over or self._words[self._at].kind not in ("word", "quoted"):
            return ""
        self._at += 1
        return self._words[self._at - 1].value

    def names(self) -> list[str]:
        found = [self.name()]
        while self.skips(","):
            found.append(self.name())
        return found

    def value(self) -> Token | None:
        if self.is_over or self._words[self._at].kind not in ("text", "number", "parameter"):
            return None
        self._at += 1
        return self._words[self._at - 1]


def key_value(literal: str, data_type: pa.DataType) -> str | int | None:
    """The value of a literal for a column of a key, if equality means the same to SQL and to the key; None otherwise.

    Args:
        literal: a literal of SQL, as `literal` of value_types.py or a client writes it.
        data_type: the type of the column.
    """
    words: Sequence[Token] = pieces(literal)
    while words and words[0].text == "(" and words[-1].text == ")":
        words = words[1:-1]
    is_cast = bool(words) and words[0].upper == "CAST"
    if is_cast:
        words = words[2:3] if words[-2].upper in _INTEGERS else []
    if len(words) != 1:
        return None
    word = words[0]
    if pa.types.is_string(data_type) and not is_cast and word.kind == "text" and word.text.startswith("'"):
        return word.value
    if pa.types.is_integer(data_type) and (is_cast or word.kind == "number" or word.kind == "text"):
        text = word.value.strip()
        if not text.removeprefix("-").isdecimal() or not text.isascii():
            return None
        bits = data_type.bit_width - pa.types.is_signed_integer(data_type)
        number = int(text)
        lowest = -(2**bits) if pa.types.is_signed_integer(data_type) else 0
        return number if lowest <= number < 2**bits else None
    return None


_INTEGERS = ("BIGINT", "INTEGER", "SMALLINT")
