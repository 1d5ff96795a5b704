"""A root whose ledger has files that exist, epoch by epoch, and the work on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from actors.files import FileVersion
from actors.formats.options import Csv
from actors.objects.object_store import ObjectStore
from actors.sources.source import SourceDefinition
from slackwater.after_commit.actions import After
from slackwater.after_commit.declaration import declared
from slackwater.after_commit.file_work import FileWork
from slackwater.status.run_status import AfterCommitStatus, PublicationStatus, RunStatus
from state.lance.handled_files import HandledFiles
from state.location import Location
from state.tables.keys import encode_key
from tests.slackwater.reading.written_root import RootWriter, begin_root


class RealFiles:
    """Files `flights` below `raw`, and a root with a ledger of them.

    Args:
        directory: an empty directory.
        raw: where the files are; None for a directory below.
        materialize: whether the root keeps the rows.
    """

    def __init__(self, directory: Path, raw: Location | None = None, *, materialize: bool = False) -> None:
        self.directory = directory
        (directory / "raw").mkdir()
        self.raw = raw or Location(str(directory / "raw"))
        self.writer: RootWriter = begin_root(Location(str(directory / "root")), self.raw)
        self.source = SourceDefinition(name="flights", location=self.raw, format=Csv(), materialize=materialize)
        self.clock = self.writer.clock

    @property
    def root(self) -> Location:
        return self.writer.root

    def write(self, path: str, content: str = "AA,1\n") -> FileVersion:
        file = self.raw.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        found = ObjectStore(self.raw).find("flights", path)
        assert found is not None
        return found

    def finish(self, *files: FileVersion, status: str = "done", **fields: Any) -> int:
        """Commits an epoch that has finished these files, and returns it."""
        for each in files:
            row = {**vars(each), "status": status, "listed_epoch": self.writer.epoch - 1, "rows_bad": 0, **fields}
            key = encode_key("flights", each.path, each.version)
            self.writer.delta.put("ledger", key, 1, **{"done_epoch": self.writer.epoch, **row})
        return self.commit()

    def queue(self, file: FileVersion) -> None:
        """Has the file read again, in the next epoch."""
        key = encode_key("flights", file.path, file.version)
        row = {**vars(file), "row_offset": 0, "attempts": 0, "listed_epoch": self.writer.epoch, "replaces": True}
        self.writer.delta.put("queue", key, 1, **row)

    def commit(self, published: int | None = None) -> int:
        epoch = self.writer.epoch
        self.writer.commit(files=1, rows=1, published=published)
        return epoch

    def work(self, action: After) -> FileWork:
        return FileWork(self.root, [declared(self.source, action)], lambda: None, self.clock)

    def look(self, work: FileWork, after_s: float = 0.0, **published: int | None) -> AfterCommitStatus:
        """Shows the run to the work, some seconds later, and returns what it tells."""
        self.clock.advance(after_s)
        tables = tuple(PublicationStatus(view, "delta:/t", epoch) for view, epoch in published.items())
        assert work.look(RunStatus("running", self.writer.records[-1].epoch, publications=tables))
        [told] = work.statuses
        return told

    def present(self) -> set[str]:
        return {str(each.relative_to(self.raw.path)) for each in self.raw.path.rglob("*") if each.is_file()}

    def outcomes(self) -> dict[str, str]:
        """Path → the last recorded outcome."""
        rows = HandledFiles(self.root).table().to_pylist()
        return {row["path"]: row["outcome"] for row in rows}
