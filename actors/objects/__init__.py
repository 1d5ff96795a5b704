"""Objects: a location in an object store or a directory, its listings, and the content of its files.

    PageReader ──► ObjectStore.list_pages ──► ListingPage
                   ObjectStore.find(path) ──► FileVersion | None
                   ObjectChanges.delete, move, tag(FileVersion)
                   ObjectStore.open(FileVersion) ──► ObjectFile ──ranges, RangeCache──► bytes

Three ways lead to objects: to a bucket by obstore, or by boto3 where obstore refuses a name or has no such request
(`bucket_client`, `bucket_listing`); to a directory by the system (`local_listing`, `local_file`); to a web server by
urllib3 (`web_listing`, `web_client`).

Invariants:

* A listing shows each object once, with path, etag, size and time (`LISTED`); a name that is skipped is told by the
  page, and does not end the listing.
* Every read is conditional on the version that was listed: bytes of two versions are never mixed.
* Local files are opened part by part from the directory of their source, and no link is followed.
* A web server redirects to its own host, and to hosts that an option names.
* Errors of the client leave this room only as those of `state.errors` and `actors.file_errors`, by `store_errors`, and
  carry no secret.

Face: `ObjectStore`, `ObjectChanges`, `ObjectFile` with `Fetched`, `ListingPage`, `PageReader`, `RangeCache`,
`ask_store`, and `ranges`.
"""
