"""The graph of views as lines of text: each source, and below it the views that read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def graph_lines(reads: Mapping[str, Sequence[str]]) -> list[str]:
    """The graph; no lines if no view reads a view.

    A view below several parents is drawn below the first, and named below the others with dots in place of its own
    readers.

    Args:
        reads: view → the sources and views that it reads.
    """
    if not any(each in reads for names in reads.values() for each in names):
        return []
    roots = dict.fromkeys(name for names in reads.values() for name in names if name not in reads)
    drawn: set[str] = set()
    return [line for root in roots for line in (root, *_below(root, "", reads, drawn))]


def _below(name: str, indent: str, reads: Mapping[str, Sequence[str]], drawn: set[str]) -> Iterator[str]:
    readers = [view for view, names in reads.items() if name in names]
    for view in readers:
        is_last = view == readers[-1]
        again = view in drawn and any(view in names for names in reads.values())
        yield f"{indent}{'└─' if is_last else '├─'} {view}{' …' if again else ''}"
        if view not in drawn:
            drawn.add(view)
            yield from _below(view, f"{indent}{'   ' if is_last else '│  '}", reads, drawn)
