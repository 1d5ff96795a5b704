"""Known names of one source: handed on, unsent, or missing."""

from __future__ import annotations

from dataclasses import dataclass

from actors.listing.listing_digests import ListingDigests
from actors.listing.missing_files import MissingNames
from actors.listing.unsent_files import UnsentFiles
from actors.names.name_shards import Names


@dataclass(frozen=True)
class KnownNames:
    """The collections that the look-ups of one source share.

    Args:
        seen: versions that were handed on.
        unsent: files that were found and are not handed on yet.
        missing: names that were handed on and are not in the bucket any more.
        digests: parts of the last listing in which every name was known.
    """

    seen: Names
    unsent: UnsentFiles
    missing: MissingNames
    digests: ListingDigests
