"""Text of any origin without control characters: it can neither command a terminal nor hide a part of itself."""

from __future__ import annotations

import re

# C0 and C1 control characters, delete, line separators, characters that turn the direction of writing, and halves of
# characters, which no stream can encode.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def visible(text: str, keep: str = "") -> str:
    r"""The text with every control character as an escape such as `\n`, `\x1b` or `\u202e`.

    Args:
        text: a text of any origin.
        keep: control characters that stay.
    """
    return _INVISIBLE.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def one_line(text: str, most: int = 1_000) -> str:
    """A text that another program may have written, as a part of a message: `visible`, and shortened.

    Args:
        text: a text of any origin.
        most: the largest number of its characters.
    """
    return visible(text if len(text) <= most else f"{text[:most]}...")


def visible_json(document: str) -> str:
    """The same JSON, with an escape for every control character that JSON allows in its strings."""
    return _INVISIBLE.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", document)


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
