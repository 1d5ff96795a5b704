"""Patterns in the navigation: an entry like `guide/*.md` is every page of the folder that no other entry names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from typing import Any


def expanded(navigation: Sequence[Any], pages: Sequence[str]) -> list[Any]:
    """The navigation with its patterns replaced by pages.

    Args:
        navigation: as in `mkdocs.yml`: pages, or one title each with a page or a list of the same kind.
        pages: all pages, relative to the folder of the documentation, in the order of the navigation.
    """
    named = {entry for entry in _pages(navigation) if "*" not in entry}
    return _expanded(navigation, [page for page in pages if page not in named])


def _pages(navigation: Sequence[Any]) -> Iterator[str]:
    for entry in navigation:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values():
                yield from _pages([inner] if isinstance(inner, str) else inner)


def _expanded(navigation: Sequence[Any], unnamed: Sequence[str]) -> list[Any]:
    made: list[Any] = []
    for entry in navigation:
        if isinstance(entry, str):
            made.extend([page for page in unnamed if _is_in(page, entry)] if "*" in entry else [entry])
        else:
            made.append({title: v if isinstance(v, str) else _expanded(v, unnamed) for title, v in entry.items()})
    return made


def _is_in(page: str, pattern: str) -> bool:
    return fnmatch(page, pattern) and page.count("/") == pattern.count("/")
