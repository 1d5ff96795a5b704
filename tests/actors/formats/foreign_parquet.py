"""Parquet files that pyarrow cannot look at safely: encrypted, and with fewer columns than their schema."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


class _Kms(pe.KmsClient):  # type: ignore[misc]
    """Keys that protect nothing."""

    def __init__(self, config: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, master_key: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, master_key: str) -> bytes:
        return base64.b64decode(wrapped)


def write_encrypted(table: pa.Table, *, plaintext_footer: bool, column_keys: dict[str, list[str]]) -> bytes:
    """A Parquet file with encrypted columns."""
    config = pe.EncryptionConfiguration("footer key", column_keys=column_keys, plaintext_footer=plaintext_footer)
    factory = pe.CryptoFactory(_Kms)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(custom_kms_conf={}), config)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def with_fewer_columns(table: pa.Table) -> bytes:
    """A Parquet file whose row group has only the first of the two columns of its schema."""
    contents = []
    for each in (table, table.select(table.column_names[:1])):
        sink = pa.BufferOutputStream()
        pq.write_table(each, sink, store_schema=False)
        contents.append(sink.getvalue().to_pybytes())
    wide, narrow = (each[-8 - int.from_bytes(each[-8:-4], "little") : -8] for each in contents)
    # The number of rows, as a zigzag number, and the list of one row group, behind the schema.
    behind_schema = b"\x16" + bytes([2 * table.num_rows]) + b"\x19\x1c"
    groups = narrow[narrow.index(behind_schema) : narrow.index(b"parquet-cpp")]
    footer = wide[: wide.index(behind_schema)] + groups + wide[wide.index(b"parquet-cpp") :]
    data = contents[1][: -8 - len(narrow)]
    return bytes(data + footer + len(footer).to_bytes(4, "little") + b"PAR1")
