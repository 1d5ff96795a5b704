"""Errors of Lance and obstore as errors of our tree."""

from __future__ import annotations

from state.errors import StorageUnavailableError
from state.location import Location
from state.objects.storage_error import storage_error


def test_an_error_names_no_line_of_lances_code() -> None:
    error = OSError(
        "LanceError(IO): Generic S3 error: Failed to resolve region for bucket 'b', "
        "/home/runner/lance/rust/lance-io/src/object_store/providers/aws.rs:342:13"
    )
    found = storage_error(error, Location("s3://b/root"))
    assert isinstance(found, StorageUnavailableError)
    assert str(found) == (
        "s3://b/root cannot be read or written now (LanceError(IO): Generic S3 error: Failed to resolve region for "
        "bucket 'b'): try again later"
    )
