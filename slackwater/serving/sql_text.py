"""Text of SQL in its tokens: enough to split statements, to find parameters, and to see the kind of a statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Literal, TypeAlias, TypeVar

from slackwater.serving.sql_error import SYNTAX, SqlError

Kind: TypeAlias = Literal["space", "text", "quoted", "parameter", "word", "number", "mark"]

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*)
    | (?P<text>[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<parameter>\$\d+)
    | (?P<number>\d[\w.]*)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<mark>::|(?:(?!--|/\*)[-+*/<>=~!@\#%^&|`?])+|[^\w\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")


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
    """A piece of SQL."""

    kind: Kind
    text: str

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


def tokens(text: str) -> Iterator[Token]:
    """The pieces of a text of SQL; together they are the text.

    Raises:
        SqlError: a quote or a comment has no end.
    """
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found[0] in ("'", '"'):
            raise SqlError(SYNTAX, f"a quote has no end: {text[at : at + 40]!r}")
        end = _end_of_comment(text, at) if found[0] == "/*" else found.end()
        kind = found.lastgroup if found.lastgroup != "tag" else "text"
        yield Token(kind, text[at:end])  # type: ignore[arg-type]  # the groups are the kinds
        at = end


def _end_of_comment(text: str, at: int) -> int:
    depth = 0
    for mark in _COMMENT.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    raise SqlError(SYNTAX, "a comment has no end: close it with */")


@remembered
def statements(text: str) -> tuple[str, ...]:
    """The statements of a text, without their semicolons; one without a word is left out."""
    found: list[list[Token]] = [[]]
    for token in tokens(text):
        if token.text == ";":
            found.append([])
        else:
            found[-1].append(token)
    return tuple(
        "".join(token.text for token in each) for each in found if any(token.kind != "space" for token in each)
    )


def pieces(text: str) -> tuple[Token, ...]:
    """The tokens without spaces and comments."""
    return tuple(token for token in tokens(text) if token.kind != "space")


@remembered
def parameter_count(text: str) -> int:
    """The largest number of a parameter."""
    return max((int(token.text[1:]) for token in tokens(text) if token.kind == "parameter"), default=0)


def bound(text: str, literals: Sequence[str]) -> str:
    """The text with literals for its parameters.

    Raises:
        SqlError: a parameter has no value.
    """
    if "$" not in text:
        return text
    return "".join(_literal(token, literals) if token.kind == "parameter" else token.text for token in tokens(text))


def _literal(token: Token, literals: Sequence[str]) -> str:
    number = int(token.text[1:])
    if not 0 < number <= len(literals):
        raise SqlError("42P02", f"there is no parameter {token.text}")
    # In brackets: `-$1` of -1 is no comment, and `$1::text` casts the whole value.
    return f"({literals[number - 1]})"
