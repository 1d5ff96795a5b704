"""Text for people: an error in one line, and text of any origin without control characters."""

from __future__ import annotations

import re


def first_line(error: Exception) -> str:
    """The first line of an error's text, without the addresses and traces behind it."""
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def cause_of_death(error: Exception) -> str:
    """The cause of an actor's death, from Ray's `RayActorError`: the error of its constructor, or Ray's reason."""
    if not getattr(error, "actor_init_failed", False):
        return first_line(error)
    # Ray gives it as a traceback, whose last line is the error itself.
    return f"its start failed: {str(error).strip().splitlines()[-1].strip()}"


# C0 and C1 control characters, delete, line separators, and characters that turn the direction of writing.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def visible(text: str, keep: str = "") -> str:
    r"""The text with every control character as an escape such as `\n`, `\x1b` or `\u202e`.

    Args:
        text: a text of any origin.
        keep: control characters that stay.
    """
    return _INVISIBLE.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def visible_json(document: str) -> str:
    """The same JSON, with an escape for every control character that JSON allows in its strings."""
    return _INVISIBLE.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", document)


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
