"""Avro: blocks as rows, in one pass, within `ReadLimits` for hostile files.

    ObjectFile ──header──► AvroContainer ──blocks, decompressed──► records (fastavro) ──► columns ──► conform ──► Rows
                             avro_schema: the plan of a schema: fastavro's, Arrow's, and from one to the other

Invariants: blocks before the offset are not decompressed; no block is decompressed, and no list begun, before its size
is known to be within the limits; fastavro sees plain numbers, bytes and records alone, and Arrow makes the rest.

Face: `AvroReader`, through `formats.registry`.
"""
