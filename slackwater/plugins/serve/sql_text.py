"""Tokens of a text of SQL, by DuckDB's own tokenizer.

They split statements, show the steps of a session, and translate the catalog queries of tools.  Safety does not
depend on them: each text that they yield goes through DuckDB's parser, which accepts one SELECT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Literal, TypeAlias, TypeVar

from slackwater.plugins.serve.sql_error import TOO_MUCH, SqlError

Kind: TypeAlias = Literal["text", "quoted", "word", "number", "mark"]

MOST_BYTES = 128 << 10
"""DuckDB's tokenizer holds Python's lock; a longer text is one statement, a query."""

_Value = TypeVar("_Value")
_REMEMBERED, _LONGEST_REMEMBERED = 1_000, 4_000


def remembered(read: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """The same function of a text, which keeps its last values for short texts: clients repeat their statements."""
    kept = lru_cache(_REMEMBERED)(read)

    @wraps(read)
    def call(text: str) -> _Value:
        return kept(text) if len(text) <= _LONGEST_REMEMBERED else read(text)

    return call


@dataclass(frozen=True)
class Token:
    """A piece of SQL.

    Args:
        end: the byte behind it in the UTF-8 text.
    """

    text: str
    end: int = 0

    @property
    def kind(self) -> Kind:
        first, last = self.text[0], self.text[-1]
        if last == "'" or (first == "$" and last == "$"):
            return "text"
        if first == '"':
            return "quoted"
        if first.isdigit():
            return "number"
        return "word" if first.isalpha() or first == "_" or first > "\x7f" else "mark"

    @property
    def upper(self) -> str:
        """A word in capitals; of another piece its text."""
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def value(self) -> str:
        """The name or the text without its quotes; a name that is not quoted in small letters."""
        if self.kind == "quoted":
            return self.text[1:-1].replace('""', '"')
        if self.kind == "text" and self.text.startswith("'"):
            return self.text[1:-1].replace("''", "'")
        return self.text.lower() if self.kind == "word" else self.text


@remembered
def pieces(text: str) -> tuple[Token, ...]:
    """The tokens of a text, without spaces and comments.

    Raises:
        SqlError: the text is longer than `MOST_BYTES`.
    """
    import duckdb

    encoded = text.encode()
    if len(encoded) > MOST_BYTES:
        raise SqlError(TOO_MUCH, f"a statement of this kind has at most {MOST_BYTES >> 10} KiB")
    found = duckdb.tokenize(text)
    ends = [start for start, _ in found[1:]] + [len(encoded)]
    tokens = []
    for (start, kind), end in zip(found, ends, strict=True):
        piece = encoded[start:end].rstrip()
        if piece and kind.name != "comment":
            tokens.append(Token(piece.decode(errors="replace"), start + len(piece)))
    return tuple(tokens)


@remembered
def statements(text: str) -> tuple[str, ...]:
    """The statements of a text, without their semicolons; one without a word is left out."""
    if not text.strip():
        return ()
    if len(text.encode()) > MOST_BYTES:
        return (text,)
    encoded, found, start, is_empty = text.encode(), [], 0, True
    for token in (*pieces(text), None):
        if token is not None and token.text != ";":
            is_empty = False
            continue
        end = len(encoded) if token is None else token.end - 1
        if not is_empty:
            found.append(encoded[start:end].decode())
        start, is_empty = end + 1, True
    return tuple(found)


def behind(text: str, token: Token) -> str:
    """The text behind a token of it."""
    return text.encode()[token.end :].decode()
