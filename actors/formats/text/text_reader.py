"""Reader of text files: one row a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from actors.file_errors import UnreadableFile, one_line
from actors.formats.fitting_columns import require_fitting
from actors.formats.options import Text
from actors.formats.template import ReadRequest
from actors.formats.text import lines as text_lines
from actors.formats.text.content import TextContent
from actors.formats.text.lines import first_line_end, last_line_end, line_ends, require_utf8
from actors.formats.text.rows import OpenedText, RecordReader
from actors.objects.object_file import ObjectFile
from actors.settings import ReadLimits

_VALUE_BYTES = 4


class TextReader(RecordReader):
    """Reads text files; see `FileReader`.  Each line is a row of one string, also an empty line.

    Args:
        format: the options of the format.
        limits: the limits of one file.
    """

    def __init__(self, format: Text, limits: ReadLimits = ReadLimits()) -> None:
        super().__init__(limits)
        self._format = format

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        return pa.schema([("value", pa.string())])

    def _open(self, request: ReadRequest) -> OpenedText | None:
        require_fitting(self._format, request.schema)
        if not request.file.size:
            return None
        content = TextContent(request.file, self._limits, self._format.encoding, request.offset.anchor_byte)
        return OpenedText(content, _Parser(request.schema, self._limits))


class _Parser:
    """A `RecordParser`: each line is good."""

    first_end, last_end, ends = staticmethod(first_line_end), staticmethod(last_line_end), staticmethod(line_ends)
    others: tuple[pa.Field, ...] = ()
    missing: tuple[str, ...] = ()

    def __init__(self, schema: pa.Schema, limits: ReadLimits) -> None:
        self._schema = schema
        self.most_records = max(1, limits.max_batch_bytes // _VALUE_BYTES)

    def is_row(self, record: bytes) -> bool:
        return True

    def parse(self, text: text_lines.Text) -> pa.Table:
        require_utf8(text)
        if not text:
            return self._schema.empty_table()
        ends = line_ends(text)
        offsets = [0, *ends] if len(ends) and ends[-1] == len(text) else [0, *ends, len(text)]
        lines = pa.StringArray.from_buffers(
            len(offsets) - 1, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(text)
        )
        lines = pc.utf8_rtrim(lines, "\r\n")
        others = [pa.nulls(len(lines), field.type) for field in list(self._schema)[1:]]
        return pa.Table.from_arrays([lines, *others], schema=self._schema)

    def faults(self, records: Sequence[bytes]) -> Mapping[int, str]:
        return {}

    def reason(self, error: Exception) -> str:
        return error.reason if isinstance(error, UnreadableFile) else one_line(error)
