"""Fragments of a version of the store, by their data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import lance


@dataclass(frozen=True)
class Fragments:
    """The fragments of one version.

    Args:
        by_path: data file → fragment, in the order of the version.
        first_rows: data file → the position of its first row among all rows of the version.
    """

    version: int
    by_path: Mapping[str, lance.LanceFragment]
    first_rows: Mapping[str, int]


class FragmentsOfVersions:
    """The fragments of a store, version after version: Lance takes 10 µs for the path of one of them."""

    def __init__(self) -> None:
        self._paths: dict[int, str] = {}
        self._last: Fragments | None = None

    def of(self, dataset: lance.LanceDataset) -> Fragments:
        last = self._last
        if last is None or last.version != dataset.version:
            last = self._last = self._read(dataset)
        return last

    def _read(self, dataset: lance.LanceDataset) -> Fragments:
        by_path, first_rows, paths = {}, {}, {}
        rows = 0
        for fragment in dataset.get_fragments():
            path = self._paths.get(fragment.fragment_id) or data_file(fragment)
            by_path[path], first_rows[path] = fragment, rows
            count = fragment.count_rows()
            rows += count
            if count > 1:
                # The head and the directory, of one row each, get new data files; the others never do.
                paths[fragment.fragment_id] = path
        self._paths = paths
        return Fragments(dataset.version, by_path, first_rows)


def in_groups(fragments: Sequence[lance.LanceFragment], most_rows: int) -> Iterator[list[lance.LanceFragment]]:
    """Fragments in their order, in groups of at most `most_rows` rows, or of one fragment."""
    group: list[lance.LanceFragment] = []
    rows = 0
    for fragment in fragments:
        if group and rows + fragment.count_rows() > most_rows:
            yield group
            group, rows = [], 0
        group.append(fragment)
        rows += fragment.count_rows()
    if group:
        yield group


def data_file(fragment: lance.LanceFragment) -> str:
    """The path of the data file of a fragment, which no other fragment ever has."""
    path: str = fragment.metadata.files[0].path
    return path
