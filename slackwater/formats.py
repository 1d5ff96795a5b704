"""The built-in file formats, and the interface of a custom one: the names that its reader needs.

    @dataclass(frozen=True, kw_only=True)
    class AccessLog:
        name: str = field(default="access_log", init=False)

        def reader(self, limits: ReadLimits) -> FileReader:
            return AccessLogReader(limits)

Pass a `CustomFormat` to `Pipeline.source(format=...)` as an object; or by its name, if its package declares the entry
point `access_log = "its_module:AccessLog"` in the group `slackwater.formats`.  Its `FileReader` yields `Rows` from an
`Offset` on; `conform` converts a table to the schema of the source.  Raise `UnreadableFile` for a file, and yield a
`BadRecord` for a single record that cannot be read.  `ObjectFile` has the content: `stream()` for all of it,
`fetch(ranges)` for parts.
"""

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
from actors.formats.reader import CustomFormat, FileReader
from actors.objects.object_file import ObjectFile
from actors.rows import BadRecord, Offset, Rows
from actors.schemas.conform import conform
from actors.settings import ReadLimits

__all__ = [
    "Avro",
    "BadRecord",
    "Csv",
    "CustomFormat",
    "Debezium",
    "EmptyFile",
    "FileReader",
    "Json",
    "ObjectFile",
    "Offset",
    "Orc",
    "Parquet",
    "ReadLimits",
    "Rows",
    "Text",
    "UnreadableFile",
    "conform",
]
