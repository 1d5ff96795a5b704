"""Text formats: CSV, JSON and plain text.

    TextContent (decompressed, UTF-8) ──► RecordReader: blocks of whole records ──► RecordParser.parse ──► Rows
                                                         └── a block with a bad record: `formats.salvage`

JSON finds records in its own way, since a record may span lines or end within a line:

    TextContent ──► JsonRows: blocks ──► lines that Arrow parses as they are                      ──► Rows
                                    └──► json_records: objects over lines, side by side, in arrays ──►
                                             JsonColumns: Arrow, and columns that are parsed apart (maps, JSON text)

`TextContent` refuses content whose first bytes show another format (`formats.signatures`).

Invariants:

* A block holds whole records.
* A position that is saved as an anchor is a position in the file.
* A record that is longer than `ReadLimits.max_record_bytes` ends the file as unreadable.
* The search for the ends of records takes time in proportion to the text.

Face: `CsvReader`, `JsonReader`, `TextReader`, through `formats.registry`.
"""
