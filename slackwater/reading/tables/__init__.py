"""Tables of a root for readers: epochs, files, sources, views, bad records.

Each module makes one public table of one version of the store: Arrow, with documented columns.  `page` and
`file_search` cut tables that are too long to be read as a whole.  `run_files` counts the files
that a run has listed and not committed.

Face: through `Store` and `Snapshot`; `source_table.SourceDiscovery` and `page.Page` are values of the public face.
"""
