"""Text formats: CSV, JSON and plain text.

    TextContent (decompressed, UTF-8) ──► RecordReader: blocks of whole records ──► RecordParser.parse ──► Rows
                                                         └── a block with a bad record: `formats.salvage`

JSON has its own way to its records, since their ends are not those of lines:

    TextContent ──► JsonRows: blocks ──► lines that Arrow parses as they are                      ──► Rows
                                    └──► json_records: objects over lines, side by side, in arrays ──►
                                             JsonColumns: Arrow, and columns that are parsed apart (maps, JSON text)

`TextContent` refuses content whose first bytes show another format (`formats.signatures`).

Invariants: a block holds whole records; a position that is saved as an anchor is a position in the file; a record that
is longer than `ReadLimits.max_record_bytes` ends the file as unreadable; finding the ends of records takes time in
proportion to the text.

Face: `CsvReader`, `JsonReader`, `TextReader`, through `formats.registry`.
"""
