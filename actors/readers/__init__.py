"""Readers: the rows of one file, in file order, in the schema of its source.

    ObjectFile ──► FileReader.infer_schema ──► safe schema        (only for a source that declares none)
        │
        └────────► FileReader.read(schema, offset_rows) ──► pieces, each an Arrow table of about `piece_bytes`
                        parquet: row groups            │
                        csv, json: blocks of text      └── conform: columns, order and types of the schema

Invariants: the pieces from row k on are exactly the rows that follow the first k, for every k; a row's position in its
file never depends on where reading started or on the size of the pieces.  A small file is one GET, for inference and
reading together, and one piece.  What is wrong with the file is an `UnreadableFile`, with the row if there is one;
pieces that were yielded before it stay valid.  What is wrong with the store passes through as it is.  What a file can
make a reader do is bounded by `ReadLimits`, whatever its bytes are: above them it is an `UnreadableFile`, too.

* `reader.py`: the protocol `FileReader`, and `reader_for` a format.
* `parquet.py`: `ParquetReader`; groups of rows that lie before the offset are not read, nor are columns of no use.
  `parquet_bounds.py`: what decoding costs; `parquet_pages.py`: the headers of pages; `parquet_windows.py`: row groups
  that are too large to be held; `long_texts.py`: columns that are unfolded a few rows at a time.
* `text_rows.py`: what the text formats share: records cut out of the stream, parsed in blocks, one by one where a block
  has a bad one (`salvage.py`); `text_content.py`: decompression by content; `text_lines.py`: where lines end.
* `csv.py`: `CsvReader`; `csv_records.py`: where records end, quotes and all.
* `json.py`: `JsonReader`, one object a line; `json_inference.py`: what columns lines show; `json_shape.py`: how wide
  and deep they are; `json_text.py`: Arrow's parser of them.
* `text.py`: `TextReader`, a row for each line.
* `expansion.py`: `Expansion`, how much more than its size a file has become; `row_bytes.py`: what a row takes at least;
  `pieces.py`: tables cut to size.
"""

from __future__ import annotations

from actors.formats.parquet.parquet_reader import ParquetReader
from actors.formats.reader import FileReader, reader_for
from actors.formats.text.csv import CsvReader
from actors.formats.text.json import JsonReader

__all__ = ["CsvReader", "FileReader", "JsonReader", "ParquetReader", "reader_for"]
