"""ORC: stripes as rows, by few requests, within `ReadLimits` for hostile files.

    ObjectFile ──tail──► OrcReader ──stripes, the wanted columns──► decoded batches ──► conform ──► Rows
                           tail: postscript and footer, and a file of one stripe for Arrow
                           stripe: its streams, and the memory that its rows take, by their lengths (runs)

Invariants: stripes before the offset and unused columns are not fetched; Arrow sees no size that was not checked; the
tail of a large file is one request.

Face: `OrcReader`, through `formats.registry`.
"""
