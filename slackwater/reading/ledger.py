"""Ledger: the files and the sources of a root, as `Store.ledger`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.file_history import FileHistory, file_history
from slackwater.reading.store_handle import StoreHandle
from slackwater.reading.tables.file_search import count_files, find_files
from slackwater.reading.tables.file_table import FileStatus, file_batches, file_table, require_source
from slackwater.reading.tables.handled_table import handled_table
from slackwater.reading.tables.page import Page
from slackwater.reading.tables.quarantine_table import find_bad_records, quarantine_table
from slackwater.reading.tables.same_content import same_content
from slackwater.reading.tables.source_table import source_table


class Ledger:
    """The files of a root, their bad records, and their sources.

    Args:
        handle: the root and its tables.
    """

    def __init__(self, handle: StoreHandle) -> None:
        self._handle = handle

    def files(
        self,
        source: str | None = None,
        status: FileStatus | None = None,
        *,
        where: pc.Expression | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """One row for every version of every listed file.

        The views hold exactly the first `rows_read` records of each version, in file order, less its `rows_bad`
        quarantined ones.  Of a version that is `replaced` or `forgotten` they held these records before
        `removed_epoch`, and hold none now.

        The queue of unfinished files is read, and then the ledger of the source, slice by slice, up to `limit`.  Of the
        ledger `waiting` and `reading` read nothing, and a rare status only its rows.  The result is in memory at once:
        of a ledger of millions take `count_files`, `find_files` or `file_batches`.

        Args:
            source: the name of a source; None for all.
            status: one of `waiting`, `reading`, `done`, `quarantined`, `vanished`, `replaced` or `forgotten`.
            where: a condition on columns of the result, as an expression of `pyarrow.compute`.
            limit: the largest number of rows: the first ones by source and path.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: the status, the condition or the limit is not valid.

        Example:
            >>> store.ledger.files("flights", where=pc.field("rows_bad") > 0, limit=100)  # doctest: +SKIP
        """
        state, catalog = self._handle.cataloged()
        return file_table(state, catalog, None, source=source, status=status, where=where, limit=limit)

    def same_content(self, source: str | None = None) -> pa.Table:
        """The files with rows in the views whose content another file of the same source has, too.

        A copy and a renamed file are new files, so their rows count again.  The columns are `source`, `content` (the
        etag or a digest), `path`, `size`, `status`, `rows_read` and `listed_epoch`.  In a bucket files are compared by
        their strong etags and sizes; a store whose etags differ between uploads of one content hides the copy.  Local
        files of equal size are read and compared by SHA-256.

        Args:
            source: the name of a source; None for all.

        Raises:
            NotFoundError: the source does not exist.
        """
        state, catalog = self._handle.cataloged()
        return same_content(state, catalog, source=source)

    def file_batches(
        self,
        source: str | None = None,
        status: FileStatus | None = None,
        *,
        where: pc.Expression | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of `files` in parts of about 100,000: one part of a ledger is in memory at a time.

        Rows are in the order of source and path.  The iterator reads a part when it returns it.

        Args:
            source: the name of a source; None for all.
            status: a status, as for `files`; None for all.
            where: a condition, as for `files`.
            limit: the largest number of rows; no slice behind them is read.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: the status, the condition or the limit is not valid.

        Example:
            >>> import pyarrow.parquet
            >>> with pyarrow.parquet.ParquetWriter("files.parquet", schema) as writer:  # doctest: +SKIP
            ...     for batch in store.ledger.file_batches():
            ...         writer.write_batch(batch)
        """
        state, catalog = self._handle.cataloged()
        return file_batches(state, catalog, source=source, status=status, where=where, limit=limit)

    def find_files(
        self,
        text: str = "",
        *,
        source: str | None = None,
        status: FileStatus | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """A page of the files whose URL contains a text: columns as `files`, ordered by source and path.

        For a ledger that is too long for `files`: of a million rows only a page is read.

        Args:
            text: a part of the path, ignoring case; or a whole URL, or the beginning of one.
            source: the name of a source; None for all.
            status: a status, as for `files`; None for all.
            after: `Page.after` of the previous page; None for the first page.
            limit: the number of rows of a page.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: `status`, `after` or `limit` is not valid.

        Example:
            >>> page = store.ledger.find_files("2013-02", status="quarantined")  # doctest: +SKIP
            >>> following = store.ledger.find_files("2013-02", status="quarantined", after=page.after)  # doctest: +SKIP
        """
        state, catalog = self._handle.cataloged()
        return find_files(state, catalog, text, source=source, status=status, after=after, limit=limit)

    def count_files(self) -> pa.Table:
        """One row per `source` and `status`: the number of `files`, and sums over them.

        The sums are over `rows_read`, `rows_bad`, `bytes_read` and `requests`; `files_bad` is the number of files
        with a bad record.  The store keeps these sums: the cost does not grow with the ledger.
        """
        return count_files(self._handle.latest())

    def handled_files(self, source: str | None = None) -> pa.Table:
        """The deletions, moves and tags of files after the commit of their rows, in the order of these actions.

        The columns are `source`, `path` (the URL before the action), `action`, `outcome`, `at`, `epoch` (the epoch that
        finished the file) and `error`.  `outcome` is `done`; `absent`, if the object did not exist; `changed`, if it
        was another version, which the run left alone; or `failed`, with the error.  The run tries a failed action
        again, which adds another row.

        Args:
            source: only files of this source.

        Raises:
            NotFoundError: the source does not exist.
        """
        catalog = self._handle.cataloged()[1]
        require_source(source, catalog)
        return handled_table(self._handle.root, catalog, source)

    def quarantine(self, source: str | None = None) -> pa.Table:
        """One row for every bad record; the views hold the rows around it.

        A poison message of a queue of events has a row, too: its `path` is the URL of the queue with `#` and the id of
        the message, its `row` is null, and `raw` is its body.

        The columns: `source`; `path`, the whole URL of the file as in `files`; `row`, the position in the file from 0,
        as in the metadata column `_row` (messages count from 1); `raw`, the first 64 KiB of the record, for Parquet the
        row as JSON; `reason`; `epoch`, the epoch that quarantined it.

        Cleared records are left out; `rows_bad` of `files` still counts them.

        Args:
            source: the name of a source; None for all.

        Raises:
            NotFoundError: the source does not exist.
        """
        state, catalog = self._handle.cataloged()
        return quarantine_table(state, catalog, None, source)

    def find_bad_records(self, source: str | None = None, *, after: str | None = None, limit: int = 100) -> Page:
        """A page of the bad records, ordered by source, path and row: columns as `quarantine`.

        Args:
            source: the name of a source; None for all.
            after: `Page.after` of the previous page; None for the first page.
            limit: the number of rows of a page.

        Raises:
            NotFoundError: the source does not exist.
            UsageError: `after` or `limit` is not valid.
        """
        state, catalog = self._handle.cataloged()
        return find_bad_records(state, catalog, source, after, limit)

    def why(self, path: str | os.PathLike[str]) -> FileHistory:
        """The history of one object, and the reason why its rows are in the views or not.

        Args:
            path: the whole URL of the object, or its path below a source.
        """
        state, catalog = self._handle.cataloged()
        return file_history(
            os.fspath(path), self._handle.root, state, catalog, self._handle.owner(), self._handle.clock.now()
        )

    def sources(self) -> pa.Table:
        """One row per source.

        `left_out` has the extra columns of its files, and `missing` the columns that files lack, each with the first
        file.  `changes_ignored` counts the files that changed after they were read, and were not read again.
        `listed_at` is the end of the last listing, or null.  `watermark` is the event time before which no row is
        expected, or null.

        `queue` is null for a source without notifications.  It has the `url` of the queue; `in_flight`, the messages
        that a run works on, and `oldest_s`, the age of the oldest of them in seconds; the messages `received` and
        `redelivered` since the start of the last run; `poison`, the messages in the quarantine; and `found_by_listing`,
        the files of the last listing without an event.
        """
        state, catalog = self._handle.cataloged()
        return source_table(state, catalog, self._handle.owner(), self._handle.clock.now())

    def source_schemas(self) -> dict[str, pa.Schema]:
        """The schema of each source that has one: it is declared, or was taken from the first files."""
        sources = self._handle.cataloged()[1].sources.values()
        return {each.name: pa.ipc.read_schema(pa.py_buffer(each.schema)) for each in sources if each.schema is not None}
