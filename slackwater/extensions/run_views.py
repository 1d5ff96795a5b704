"""RunViews: the declared views and published tables of a run, which keep files from deletion.

A deletion and a change of the declaration exclude each other:

    add_view, replace, retry ──► `changing` ──► the needs have another number, and no file is being deleted
    a branch is noted, a file is read again ──► `excluding` ──► no file is deleted, and earlier looks are void
    a look at the files ──► `needs` ──► the files that are due ──► `acting`, file by file, refuses an older number
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from spark_bridge.plans.view_definition import ViewDefinition, sources_read


class NeedsChangedError(Exception):
    """The declaration has changed since the needs were read."""


@dataclass(frozen=True)
class PublishedView:
    """A table that follows a view.

    Args:
        view: the name of the view.
        table: the format and place of the table, as `PublicationStatus.table`.
    """

    view: str
    table: str


@dataclass(frozen=True)
class Needs:
    """The needs of the declared views of a run, at one moment.

    Args:
        number: of the declaration; it changes with every change of the views.
        is_analysed: whether this run has analysed its views; before that, the definitions are not comparable with
            the stored ones.
        reads: view → the sources that it may read, also by way of other views.
        identities: view → identity, see `CatalogView`; without the views that wait for the schema of a source.
        rebuilt: the views that this run rebuilds, see `CatalogView.version_name`.
        changing: view → the sources that it may read, of the changes that are being accepted.
        published: the tables that follow views.
    """

    number: int = 0
    is_analysed: bool = False
    reads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    identities: Mapping[str, str] = field(default_factory=dict)
    rebuilt: frozenset[str] = frozenset()
    changing: Mapping[str, frozenset[str]] = field(default_factory=dict)
    published: tuple[PublishedView, ...] = ()


class RunViews:
    """The needs of a run, and the lock between their changes and deletions.  Safe to use from many threads.

    Args:
        published: the tables that follow views.
        changed: is notified of changes; None for a condition of its own.
    """

    def __init__(
        self,
        definitions: Iterable[ViewDefinition],
        sources: Iterable[str],
        published: Iterable[PublishedView] = (),
        changed: threading.Condition | None = None,
    ) -> None:
        self._changed = changed or threading.Condition()
        self._sources = tuple(sources)
        self._acting = self._exclusions = 0
        self._number = 0
        self._changes: dict[int, tuple[str, frozenset[str]]] = {}
        self._definitions = {each.name: each for each in definitions}
        self._is_analysed = False
        self._identities: Mapping[str, str] = {}
        self._rebuilt: frozenset[str] = frozenset()
        self._published = tuple(published)

    @property
    def needs(self) -> Needs:
        """The present needs."""
        with self._changed:
            return Needs(
                number=self._number,
                is_analysed=self._is_analysed,
                reads=sources_read(self._definitions, self._sources),
                identities=self._identities,
                rebuilt=self._rebuilt,
                changing=dict(self._changes.values()),
                published=self._published,
            )

    def analysed(
        self, definitions: Mapping[str, ViewDefinition], identities: Mapping[str, str], rebuilt: Collection[str] = ()
    ) -> None:
        """Records that the run has analysed its views.

        Args:
            definitions: the declared views, by name.
            identities: view → identity, of each view whose sources have schemas.
            rebuilt: the stored views that are rebuilt, see `CatalogView.version_name`.
        """
        with self._changed:
            self._number += 1
            self._definitions = dict(definitions)
            self._identities = dict(identities)
            self._rebuilt |= frozenset(rebuilt)
            self._is_analysed = True

    @contextmanager
    def changing(self, *views: ViewDefinition, published: Iterable[PublishedView] = ()) -> Iterator[None]:
        """Protects the files of views while a change of them is accepted or refused.

        It waits until no file is being deleted.  Files that are deleted later are not among the protected files.

        Args:
            views: the views, as they will be.
            published: the tables that will follow them; they count from now on.
        """
        with self._changed:
            self._number += 1
            number = self._number
            new_tables = {*published}.difference(self._published)
            definitions = {**self._definitions, **{each.name: each for each in views}}
            reads = sources_read(definitions, self._sources)
            self._changes |= {number + at: (each.name, reads[each.name]) for at, each in enumerate(views)}
            self._number += len(views)
            self._published = (*self._published, *new_tables)
            self._changed.wait_for(lambda: self._acting == 0)
        try:
            yield
        except BaseException:
            with self._changed:
                self._published = tuple(each for each in self._published if each not in new_tables)
            raise
        finally:
            with self._changed:
                self._number += 1
                for at in range(len(views)):
                    del self._changes[number + at]

    @contextmanager
    def excluding(self) -> Iterator[None]:
        """Excludes deletions while a record is committed that keeps files, such as a branch.

        It waits until no file is being deleted.  A look that began before its end deletes nothing after it.
        """
        with self._changed:
            self._number += 1
            self._exclusions += 1
            self._changed.wait_for(lambda: self._acting == 0)
        try:
            yield
        finally:
            with self._changed:
                self._number += 1
                self._exclusions -= 1

    def publish(self, published: Iterable[PublishedView]) -> None:
        """Adds tables that follow views, from now on."""
        with self._changed:
            self._number += 1
            self._published = tuple(dict.fromkeys([*self._published, *published]))

    @contextmanager
    def acting(self, needs: Needs) -> Iterator[None]:
        """Excludes changes of the declaration while a file is deleted.

        Args:
            needs: by which the file was chosen.

        Raises:
            NeedsChangedError: they are older than the declaration, or a record is being committed that keeps files.
        """
        with self._changed:
            if needs.number != self._number or self._exclusions:
                raise NeedsChangedError
            self._acting += 1
        try:
            yield
        finally:
            with self._changed:
                self._acting -= 1
                self._changed.notify_all()
