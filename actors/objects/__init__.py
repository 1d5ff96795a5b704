"""Objects: a location in an object store or a directory, its listings, and the content of its files.

    PageReader ──► ObjectStore.list_pages ──► bucket_listing (obstore, boto3) | local_listing ──► ListingPage
                   ObjectStore.find(path) ──► FileVersion | None
                   ObjectStore.open(FileVersion) ──► ObjectFile ──ranges, RangeCache──► bytes

Invariants:

* A listing shows each object once, with path, etag, size and time (`LISTED`); a name that the client does not take is
  told by the page, and does not end the listing.
* Every read is conditional on the etag that was listed: bytes of two versions are never mixed.
* Errors of the client leave this room only as those of `state.errors` and `actors.file_errors`, by `store_errors`, and
  carry no secret.

Face: `ObjectStore`, `ObjectFile` with `Fetched`, `ListingPage`, `PageReader`, `RangeCache`, `ask_store`, and `ranges`.
"""
