"""The columns of a Parquet file whose texts, unfolded, may be far more than what is stored of them."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from actors.formats.parquet.pages import pages

# A text that is not in a dictionary takes at least its length's four bytes.
_PLAIN_VALUE_BYTES = 4
_PEEK_BYTES = 64 * 1024


def may_be_long(
    stream: pa.NativeFile, metadata: pq.FileMetaData, path: str, group: int, index: int, most_bytes: int
) -> bool:
    """Whether a chunk is better decoded as a dictionary, since its values may take more than `most_bytes` of memory.

    A chunk that is all dictionary costs no more that way.  In another one the dictionary decides: first its size, then
    its longest text, which comes with the first row.

    Args:
        stream: of the file.
        metadata: of the file.
        path: of the column, as the schema has it; a damaged chunk may name another.
        group: the row group.
        index: the chunk in it.
        most_bytes: that all its values may take.
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
        raise  # says nothing about the file
    except (pa.ArrowException, OSError):
        return True  # it is damaged, which the decoder will say when it comes to these rows


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
