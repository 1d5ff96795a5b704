"""Checks of views, backfills and stored rows against their models."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from actors.files import FileKey
from state.epoch import epoch_time_us
from state.errors import NotFoundError
from state.tables.records import EpochRecord, ViewVersion
from state.tables.stored_rows import base_name, declared_name
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDataset, Row
from tests.simulation.model_views.model_view import (
    ModelView,
    TemporalFilterRows,
    follows_watermarks,
    identity_of,
    internal_views_of,
)
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.backfill_history import first_epoch, history_of, offsets_of, taken_spans
from tests.simulation.world.bucket import Content
from tests.simulation.world.file_rows import RowsByFile, Span


class ViewChecker:
    """Checks that each view of an epoch is its query over the ingested rows, and stays so (G1, G2, G3).

    Args:
        datasets: path → dataset of a view.
        contents: file version → its content.
        models: the models of the views; the first of them reads every source.  Two of one name differ in identity.
    """

    def __init__(
        self,
        datasets: Mapping[str, MemoryDataset],
        contents: Mapping[FileKey, Content],
        models: Sequence[ModelView],
    ) -> None:
        self._datasets, self._contents = datasets, contents
        self._models = {model.name: model for model in reversed(models)}
        self._by_identity = {(model.name, identity_of(model)): model for model in models}
        self._identities: Mapping[str, str] = {}
        self._first = models[0].name
        self._committed: dict[tuple[str, int], object] = {}
        self._stored: dict[str, object] = {}
        self._ingested: dict[int, RowsByFile] = {}
        self._times: dict[str, int] = {}

    def check(
        self,
        epoch: int,
        views: Iterable[ViewVersion],
        ingested: RowsByFile,
        tables_at: Callable[[int], FileTables],
        stopped: Mapping[str, Row] = MappingProxyType({}),
        identities: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Checks the views of the next version of the store.

        Args:
            epoch: the epoch of its head.
            views: the views of its head.
            ingested: the rows of each file version that they must have.
            tables_at: epoch → the rows about files at this epoch, for backfills.
            stopped: the catalog's rows of the views that must stay as they are, by name.
            identities: name → identity, as the catalog has it.
        """
        self._ingested[epoch], self._identities = ingested, identities
        before, self._stored = self._stored, {}
        for view in views:
            model = self._model_of(view)
            if model.is_full:
                self._check_full(view, model)
                self._check_error(stopped.get(view.name))
                continue
            (path, version), *partials = view.datasets.items()
            rows = self._rows(path, version)
            stored = self._rows(*partials[0]) if partials else rows
            self._stored[view.name] = stored
            if view.name in stopped:
                if stored != before.get(view.name, stored):
                    raise PromiseBroken("G1", f"{view.name} at version {version} is stopped, and has changed")
                if follows_watermarks(model):
                    self._check_error(stopped.get(view.name))
                elif view.pinned_epoch is None:  # else it is a backfill that is not declared any more
                    self._check_stopped(stored, stopped[view.name], model)
                self._committed |= {(path, version): rows, **dict.fromkeys(partials, stored)}
                continue
            if follows_watermarks(model) and view.pinned_epoch is None:
                self._committed |= {(path, version): rows, **dict.fromkeys(partials, stored)}
                continue  # see `ClosingChecker` and `ExpiryChecker`
            if view.pinned_epoch is None or model.parents:
                whole = stored
            else:
                whole = model.after(stored, self._missing_spans(view, model, tables_at))
            own = {file: each for file, each in ingested.items() if each and file[0] in model.sources}
            if model.parents and view.pinned_epoch is not None:
                own = {}  # it has no rows before it is shown
            difference = model.difference(whole, own)
            if difference is None and model.result(stored) != rows:
                difference = f"its rows are {rows}, its partials {stored}"
            if difference is not None:
                raise PromiseBroken("G1", f"{view.name} at version {version}: {difference}")
            if isinstance(model, TemporalFilterRows) and view.pinned_epoch is None:
                self._check_time(epoch, view, model, is_same=view.name in before and before[view.name] == stored)
            self._committed |= {(path, version): rows, **dict.fromkeys(partials, stored)}

    def begin(self, above: ViewChecker, epoch: int) -> None:
        """Begins with the history of the root above a branch, up to the epoch that the branch begins with."""
        self._ingested = {each: rows for each, rows in above._ingested.items() if each <= epoch}

    def is_current(self, views: Iterable[ViewVersion], time_us: int) -> bool:
        """Whether the views with filters by the time have the rows of a time, or were right at a later one.

        Args:
            views: those that are maintained, of the last version of the store.
            time_us: the time, in microseconds since 1970.
        """
        for view in views:
            model = self._model_of(view)
            if isinstance(model, TemporalFilterRows) and view.pinned_epoch is None and (model.time_us or 0) < time_us:
                rows = self._ingested[max(self._ingested)]
                if model.rows(rows) != model.at(time_us).rows(rows):
                    return False
        return True

    def check_declared(self, names: Iterable[str], dropped: Iterable[str], views: Mapping[str, ViewVersion]) -> None:
        """Checks that a run that has caught up has created its views, and ended those that were dropped.

        Args:
            names: the names of the declared views.
            dropped: the names of the views that were dropped.
            views: the views of the last version of the store.
        """
        # The first view is there as soon as the schema of every source is known.
        missing = [name for name in names if name not in views and self._first in views]
        if missing:
            raise PromiseBroken("G1", f"caught up, and the views {missing} do not exist")

        left = [name for name in views if declared_name(name) in {*dropped}]
        if left:
            raise PromiseBroken("G1", f"caught up, and the views {left} were dropped and exist")

    def check_caught_up(self, views: Iterable[ViewVersion], files: Collection[FileKey]) -> None:
        """Checks that the full views have the rows of files: a run that has caught up has recomputed them.

        Args:
            views: the views of the last version of the store.
            files: the files that were in the bucket at the mark.
        """
        ingested = self._ingested[max(self._ingested)]
        for view in views:
            model = self._model_of(view)
            if model.is_full:
                own = {file: rows for file in files if file[0] in model.sources and (rows := ingested.get(file))}
                spans = [span for span in self._rows(view.path, view.version) if span.file in own]  # type: ignore[attr-defined]
                difference = model.difference(tuple(spans), own)
                if difference is not None:
                    raise PromiseBroken("G1", f"caught up, and {view.name} at version {view.version}: {difference}")

    def _model_of(self, view: ViewVersion) -> ModelView:
        name = base_name(view.name)
        model = self._by_identity.get((name, self._identities.get(view.name, "")), self._models[name])
        return model.at(view.noted.get("time_us")) if isinstance(model, TemporalFilterRows) else model

    def _check_time(self, epoch: int, view: ViewVersion, model: TemporalFilterRows, *, is_same: bool) -> None:
        """Checks that the rows of a view are those of the time of an epoch, and change only with that."""
        last, now, time_us = self._times.get(view.path, 0), epoch_time_us(epoch), model.time_us
        if time_us is None or not last <= time_us <= now:
            raise PromiseBroken("time", f"{view.name} is right at {time_us}, after {last}, in the epoch of {now}")
        if not is_same and time_us != now:
            raise PromiseBroken("time", f"the rows of {view.name} change in the epoch of {now}, to those of {time_us}")
        self._times[view.path] = time_us

    def _check_stopped(self, stored: object, row: Row, model: ModelView) -> None:
        """Checks that a stopped view has exactly the rows of the epoch at which it stopped."""
        self._check_error(row)
        epoch = row["stopped_epoch"]
        if epoch and epoch not in self._ingested:
            raise PromiseBroken("G1", f"{row['name']} is stopped at epoch {epoch}, which was not committed")
        ingested = self._ingested[epoch] if epoch else {}  # 0: it has failed in its first epoch
        own = {file: each for file, each in ingested.items() if each and file[0] in model.sources}
        difference = model.difference(stored, own)
        if difference is not None:
            raise PromiseBroken("G1", f"{row['name']}, which is stopped at epoch {epoch}: {difference}")

    def _check_error(self, row: Row | None) -> None:
        """Checks that a view that has failed has met a row that it fails over."""
        if row is None or row["error"] is None:
            return
        model = self._models[row["name"]]
        # It fails with its parent, and with each view that has the rows of an internal view with it.
        internal = _internal_rows(model)
        sharing = {name for name, each in self._models.items() if not internal.isdisjoint(_internal_rows(each))}
        names = {model.name, *model.parents, *sharing}
        if not any(content.fails in names for content in self._contents.values()):
            raise PromiseBroken("G1", f"{row['name']} has failed ({row['error']}), and no row is the cause")

    def _check_full(self, view: ViewVersion, model: ModelView) -> None:
        """Checks that a full view is its query over the rows of the epoch that it reflects."""
        rows = self._rows(view.path, view.version)
        self._committed[view.path, view.version] = rows
        if view.reflects_epoch is None:
            if rows != ():
                raise PromiseBroken("G1", f"{view.name} reflects no epoch, and has rows")
            return
        at = max((epoch for epoch in self._ingested if epoch <= view.reflects_epoch), default=0)
        own = {file: each for file, each in self._ingested.get(at, {}).items() if each and file[0] in model.sources}
        difference = model.difference(rows, own)
        if difference is not None:
            raise PromiseBroken("G1", f"{view.name} at version {view.version}, of epoch {at}: {difference}")

    def check_tag(self, path: str) -> None:
        """Checks that the tag `committed` of a dataset names the rows of an epoch."""
        dataset = self._datasets[path]
        assert dataset.committed is not None, "the tag was moved"
        tagged = dataset.rows(path, dataset.committed)
        # A restored version has another number, and the same rows.
        if tagged not in [rows for (at, _), rows in self._committed.items() if at == path]:
            raise PromiseBroken("G2", f"version {dataset.committed} of {path} is tagged, and no epoch has its rows")

    def check_unchanged(self, records: Iterable[EpochRecord]) -> None:
        """Checks that the datasets of retained epochs still have the rows that were committed."""
        for record in records:
            for view in record.views.values():
                for path, version in view.datasets.items():
                    if self._rows(path, version) != self._committed[path, version]:
                        raise PromiseBroken("G3", f"version {version} of {path} has changed after epoch {record.epoch}")

    def _missing_spans(self, view: ViewVersion, model: ModelView, tables_at: Callable[[int], FileTables]) -> list[Span]:
        """The rows of a backfill's history that it does not have yet."""
        tables, had, since = tables_at(view.pinned_epoch or 0), dict[FileKey, int](), first_epoch(view)
        if since:
            before = tables_at(since)
            had = offsets_of(before.ledger.values(), before.queue.values(), model.sources)
        history = history_of(tables.ledger.values(), tables.queue.values(), self._contents, model.sources, had)
        return history[taken_spans(view) :]

    def _rows(self, path: str, version: int) -> object:
        try:
            return self._datasets[path].rows(path, version)
        except (KeyError, NotFoundError) as error:
            raise PromiseBroken("G2", f"an epoch names version {version} of {path}, which does not exist") from error


def _internal_rows(model: ModelView) -> set[tuple[type, frozenset[str]]]:
    """The types and sources of a view's internal views; views with a common element share that internal view."""
    return {(type(each), each.sources) for each in internal_views_of(model)}
