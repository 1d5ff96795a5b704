"""Instructions of the fetch executor to its shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from actors.fetching.handover import Handover
from actors.fetching.read_buffers import Piece
from actors.files import FileVersion
from actors.protocol.instructions import FlowInstruction, Instruction, ProposeColumns, ProposeSchema
from actors.rows import Offset


@dataclass(frozen=True)
class HandOver(Instruction):
    """Sends the state of vnodes to the fetch actor that owns them from now on."""

    to: str
    handover: Handover


@dataclass(frozen=True)
class ReadPiece(Instruction):
    """Reads the next piece of a file, from an offset if it is not open yet."""

    file: FileVersion
    offset: Offset


@dataclass(frozen=True)
class ReadFiles(Instruction):
    """Reads the next piece of each of some small files.  They are one piece of work: all outcomes come together."""

    reads: tuple[ReadPiece, ...]


@dataclass(frozen=True)
class InferSchema(Instruction):
    """Opens a file and infers its schema; the file stays open for reading."""

    file: FileVersion


@dataclass(frozen=True)
class StagePiece(Instruction):
    """Stages a piece of a file that replaces, whose rows are shown at its end; the answer is `on_staged`."""

    piece: Piece
    epoch: int


@dataclass(frozen=True)
class CloseFile(Instruction):
    """Closes a file: it is read from another place, or not at all."""

    file: FileVersion


@dataclass(frozen=True)
class CloseFiles(Instruction):
    """Closes every open file."""


@dataclass(frozen=True)
class EmitBlock(Instruction):
    """Puts rows of one source into the object store as one block of an epoch and sends its reference on.

    Attributes:
        pieces: the rows by file; each has at least one row.
    """

    source: str
    pieces: tuple[Piece, ...]
    nbytes: int
    epoch: int

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.tables)

    @property
    def tables(self) -> tuple[pa.Table, ...]:
        return tuple(piece.table for piece in self.pieces if piece.table is not None)


FetchInstruction: TypeAlias = (
    FlowInstruction
    | ReadPiece
    | ReadFiles
    | InferSchema
    | StagePiece
    | CloseFile
    | CloseFiles
    | EmitBlock
    | HandOver
    | ProposeSchema
    | ProposeColumns
)
