"""Checks of the options of a format, at their declaration."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from state.errors import SettingsError


def require_character(option: str, value: object, also: str = "") -> str:
    """A single printable ASCII character, or a tab.

    Args:
        also: other characters that are allowed.

    Raises:
        SettingsError: the value is something else.
    """
    if not isinstance(value, str) or len(value) != 1:
        raise SettingsError(f"{option}={value!r}): give exactly one character")
    if value in also:
        return value
    if not value.isascii() or not (value.isprintable() or value == "\t"):
        raise SettingsError(f"{option}={value!r}): give a printable ASCII character, or a tab")
    return value


def require_different(format: str, **characters: str | None) -> None:
    """Requires that no two options of a format are the same character; None is not compared.

    Raises:
        SettingsError: two are.
    """
    options: dict[str, str] = {}
    for option, character in characters.items():
        if character is None:
            continue
        if character in options:
            raise SettingsError(
                f"{format}({options[character]}={character!r}, {option}={character!r}): give two characters"
            )
        options[character] = option


def require_texts(option: str, value: object) -> tuple[str, ...]:
    """Several texts as a tuple.

    Raises:
        SettingsError: the value is one text, or has something else than texts.
    """
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise SettingsError(f"{option}={value!r}): give a tuple of texts, such as ('NA', 'null')")
    return tuple(value)


def require_encoding(option: str, value: object) -> str:
    """The name of an encoding of text.

    Raises:
        SettingsError: Python has no such encoding, or it is not an encoding of text.
    """
    # Codecs such as `hex` and `zlib` transform bytes; they do not encode text.
    if isinstance(value, str):
        try:
            "a".encode(value)
        except (LookupError, ValueError):
            pass
        else:
            return value
    raise SettingsError(
        f"{option}={value!r}): Python has no such encoding of text; give a name such as 'latin-1', 'cp1252' or 'utf-16'"
    )


def encoding_name(encoding: str) -> str:
    """The canonical name of an encoding."""
    return codecs.lookup(encoding).name
