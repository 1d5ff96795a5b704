"""A root whose ledger has files that exist, epoch by epoch, and the work on them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from actors.files import FileVersion
from actors.formats.options import Csv
from actors.objects.object_store import ObjectStore
from actors.sources.source import SourceDefinition
from slackwater.extensions.run_views import RunViews
from slackwater.plugins.after_commit.actions import After
from slackwater.plugins.after_commit.declaration import declared
from slackwater.plugins.after_commit.file_access import FileAccess
from slackwater.plugins.after_commit.file_work import FileWork
from slackwater.status.run_status import AfterCommitStatus, PublicationStatus, RunStatus
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance import view_dataset
from state.lance.handled_files import HandledFiles
from state.location import Location
from state.tables.keys import encode_key
from state.tables.records import ViewVersion
from state.tables.stored_rows import LINEAGE, stored_rows_name, version_number
from tests.slackwater.reading.written_root import RootWriter, begin_root

_AHEAD_S = 60.0


def _views(*names: str) -> list[ViewDefinition]:
    return [ViewDefinition(name, f"SELECT {name} FROM flights") for name in names]


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
        # Files have the times of the machine's clock, and no test lasts so long that one is newer than this.
        self.clock.set_wall((datetime.now(UTC) - self.clock.now()).total_seconds() + _AHEAD_S)
        self.views = RunViews(_views("by_carrier", "late"), ["flights"])
        self.analysed()

    @property
    def root(self) -> Location:
        return self.writer.root

    def write(self, path: str, content: str = "AA,1\n", days_ago: float | None = None) -> FileVersion:
        file = self.raw.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        if days_ago is not None:
            time = self.clock.now().timestamp() - days_ago * 86_400
            os.utime(file, (time, time))
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

    def store_rows(self, rows: Mapping[FileVersion, int]) -> None:
        """The next epoch has this number of stored rows of each file."""
        names = [(each.path, version_number(each.version), row) for each, count in rows.items() for row in range(count)]
        table = pa.table(list(map(list, zip(*names, strict=True))), schema=LINEAGE)
        path = f"views/{stored_rows_name('flights')}-{self.writer.epoch}.lance"
        version = view_dataset.create(self.root.child(path), table).version
        self.writer.views[stored_rows_name("flights")] = ViewVersion(stored_rows_name("flights"), path, version)

    def queue(self, file: FileVersion) -> None:
        """Has the file read again, in the next epoch."""
        key = encode_key("flights", file.path, file.version)
        row = {**vars(file), "row_offset": 0, "attempts": 0, "listed_epoch": self.writer.epoch, "replaces": True}
        self.writer.delta.put("queue", key, 1, **row)

    def commit(self, published: int | None = None) -> int:
        epoch = self.writer.epoch
        self.writer.commit(files=1, rows=1, published=published)
        return epoch

    def analysed(self, **identities: str) -> None:
        """Has the run analyse its views: the views of the root, and other views with these identities."""
        identities = {"by_carrier": "plan", "late": "plan", **identities}
        definitions = {each.name: each for each in _views(*identities)}
        self.views.analysed(definitions, {name: each for name, each in identities.items() if each})

    def work(self, action: After, access: FileAccess | None = None) -> FileWork:
        after = [declared(self.source, action)]
        return FileWork(self.root, after, lambda: None, self.clock, self.views, access)

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
