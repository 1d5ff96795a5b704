"""Errors of Lance and obstore as errors of our tree."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from state.errors import AccessDeniedError, DamagedStoreError, StorageUnavailableError
from state.location import Location
from state.objects.storage_error import storage_error


def test_the_last_cause_of_an_error_is_told_and_not_how_it_was_tried() -> None:
    arrow = "\n  \x1b[31m↳\x1b[0m "
    text = arrow.join(
        ["Kernel error -> Generic S3 error", "Error performing GET, max_retries", "10", "refused (os error 111)"]
    )
    said = str(storage_error(OSError(f"{text}\n"), Location("s3://lake/t")))
    assert "now (Kernel error -> Generic S3 error: refused (os error 111)): try again later" in said


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


@pytest.mark.parametrize(
    "cause",
    [
        'CredentialsNotLoaded(CredentialsNotLoaded { source: Some("no providers in chain provided credentials") })',
        "DispatchFailure(DispatchFailure { source: ConnectorError { kind: Timeout } })",
    ],
)
def test_missing_credentials_are_told_with_the_next_step(cause: str) -> None:
    error = ValueError(f"LanceError(IO): Generic N/A error: LanceError(IO): Failed to get AWS credentials: {cause}")
    found = storage_error(error, Location("s3://b/root"))
    assert isinstance(found, AccessDeniedError)
    assert str(found) == (
        "no credentials for s3://b/root were found: give storage_options (access_key_id, secret_access_key), or set "
        "them in the environment"
    )


@pytest.mark.parametrize("kept", [0, 0.5, -1])
@pytest.mark.parametrize("part", ["data/*.lance", "_versions/*.manifest"])
def test_a_torn_file_of_a_dataset_is_damage(part: str, kept: float, tmp_path: Path) -> None:
    location = Location(str(tmp_path / "t"))
    lance.write_dataset(pa.table({"a": list(range(5_000))}), location.lance_uri)
    [file] = location.path.glob(part)
    content = file.read_bytes()
    file.write_bytes(content[: int(kept) if kept < 0 else int(kept * len(content))])
    with pytest.raises((OSError, ValueError)) as raised:
        lance.dataset(location.lance_uri).to_table()
    found = storage_error(raised.value, location)
    assert isinstance(found, DamagedStoreError)
    assert str(found).endswith("restore it from a copy, or let the pipeline read its files into a new root")


def test_a_file_of_another_kind_is_damage(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "t"))
    lance.write_dataset(pa.table({"a": [1]}), location.lance_uri)
    [file] = location.path.glob("data/*.lance")
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises((OSError, ValueError)) as raised:
        lance.dataset(location.lance_uri).to_table()
    assert isinstance(storage_error(raised.value, location), DamagedStoreError)


def test_an_interrupt_that_lance_wraps_in_an_error_stays_an_interrupt() -> None:
    # So Lance tells of a KeyboardInterrupt that came while it waited for its own threads.
    with pytest.raises(KeyboardInterrupt):
        storage_error(OSError("External error: KeyboardInterrupt: "), Location("s3://b/root"))
    named = storage_error(OSError("Generic S3 error"), Location("s3://b/KeyboardInterrupt"))
    assert isinstance(named, StorageUnavailableError)
