"""Text formats: CSV, JSON lines and plain text.

    TextContent (decompressed, UTF-8) ──► RecordReader: blocks of whole records ──► RecordParser.parse ──► Rows
                                                         └── a block with a bad record: `formats.salvage`

`TextContent` refuses content whose first bytes show another format (`formats.signatures`).

Invariants: a block holds whole records; a position that is saved as an anchor is a position in the file; a record that
is longer than `ReadLimits.max_record_bytes` ends the file as unreadable; finding the ends of records takes time in
proportion to the text.

Face: `CsvReader`, `JsonReader`, `TextReader`, through `formats.registry`.
"""
