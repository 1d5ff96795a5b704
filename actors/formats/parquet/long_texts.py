"""Parquet columns whose unfolded texts may be far larger than their stored form."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from actors.formats.parquet.pages import pages

# A text outside of a dictionary takes at least the four bytes of its length.
_PLAIN_VALUE_BYTES = 4
_PEEK_BYTES = 64 * 1024


def may_be_long(
    stream: pa.NativeFile, metadata: pq.FileMetaData, path: str, group: int, index: int, most_bytes: int
) -> bool:
    """True if a chunk must be decoded as a dictionary: its values may take more than `most_bytes` of memory.

    For a chunk that is encoded wholly by dictionary this costs no more.  For others the dictionary decides: first its
    size, then its longest text, which is decoded with the first row.

    Args:
        stream: a stream over the file.
        metadata: the metadata of the file.
        path: the path of the column in the schema; a damaged chunk may name another one.
        group: the number of the row group.
        index: the number of the chunk in it.
        most_bytes: the limit for all values of the chunk, in bytes.
    """
    chunk = metadata.row_group(group).column(index)
    if chunk.total_uncompressed_size < _PLAIN_VALUE_BYTES * chunk.num_values:
        return True
    start = int(chunk.dictionary_page_offset or 0)
    first_pages = list(islice(pages(stream, start, start + chunk.total_compressed_size, chunk.num_values), 2))
    if any(page.num_bytes > most_bytes for page in first_pages):
        return True
    if first_pages and first_pages[0].is_dictionary and first_pages[0].num_bytes * chunk.num_values <= most_bytes:
        return False
    try:
        return _longest_of_dictionary(stream, metadata, path, group) * int(chunk.num_values) > most_bytes
    except pa.ArrowMemoryError:
        raise  # not an error of the file
    except (pa.ArrowException, OSError):
        return True  # a damaged chunk: the decoder reports it at these rows


def _longest_of_dictionary(stream: pa.NativeFile, metadata: pq.FileMetaData, path: str, group: int) -> int:
    parquet = pq.ParquetFile(
        stream, metadata=metadata, read_dictionary=[path], pre_buffer=False, buffer_size=_PEEK_BYTES
    )
    batch = next(parquet.iter_batches(1, row_groups=[group], columns=[path], use_threads=False), None)
    return 0 if batch is None else max(map(longest_text, batch.columns), default=0)


def longest_text(array: pa.Array) -> int:
    """The length of the longest text in the dictionaries of an array."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kinds.is_dictionary(array.type):
        return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)
    if kinds.is_struct(array.type):
        return max(map(longest_text, array.flatten()), default=0)
    if kinds.is_map(array.type):
        return max(longest_text(array.keys), longest_text(array.items))
    if kinds.is_nested(array.type):
        return longest_text(array.values)
    return 0
