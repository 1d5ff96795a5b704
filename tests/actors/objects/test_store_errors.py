"""An error of a store is one line with the fault and the next step, and never with a secret."""

from __future__ import annotations

import pickle
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import GenericError, NotSupportedError, PreconditionError
from obstore.store import S3Store

from actors.file_errors import ObjectChanged, UnreadableFile
from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from actors.objects.store_errors import ask_store, translated
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    SettingsError,
    SlackwaterError,
    StorageUnavailableError,
)
from state.location import Location
from state.objects.storage_error import storage_error
from state.objects.store_faults import DENIED_CODES

_PLANTED = "PLANTEDsecretPLANTED"


@contextmanager
def _raises_without_secrets(kind: type[SlackwaterError], match: str) -> Iterator[None]:
    with pytest.raises(kind, match=match) as caught:
        yield
    text = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert _PLANTED not in text
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_missing_bucket(s3: S3Server) -> None:
    with _raises_without_secrets(BucketNotFoundError, "s3://no-such-bucket: there is no such bucket; create it"):
        ObjectStore(s3.location("no-such-bucket")).check()


def test_missing_directory(tmp_path: Path) -> None:
    with _raises_without_secrets(BucketNotFoundError, f"{tmp_path}/nope: there is no such directory; create it"):
        ObjectStore(Location(str(tmp_path / "nope"))).check()


@pytest.mark.parametrize("option", ["access_key_id", "secret_access_key"])
def test_wrong_credentials(s3: S3Server, bucket: str, option: str) -> None:
    store = ObjectStore(Location(f"s3://{bucket}/in", {**s3.storage_options, option: _PLANTED}))
    with _raises_without_secrets(AccessDeniedError, f"s3://{bucket}/in: access is denied .403 .*check the credentials"):
        store.check()
    assert _PLANTED not in repr(store)


def test_wrong_credentials_while_reading(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a", b"1")
    page = next(ObjectStore(s3.location(bucket)).list_pages())
    file = FileVersion("s", "a", b"", page.etags[0], 1, page.last_modified[0])
    store = ObjectStore(Location(f"s3://{bucket}", {**s3.storage_options, "secret_access_key": _PLANTED}))
    with _raises_without_secrets(AccessDeniedError, f"s3://{bucket}/a: access is denied"):
        store.open(file).stream()


def test_unknown_and_impossible_options(s3: S3Server, bucket: str) -> None:
    with _raises_without_secrets(SettingsError, "storage option acces_key is not known for s3://"):
        ObjectStore(Location(f"s3://{bucket}", {**s3.storage_options, "acces_key": _PLANTED})).check()
    options = {**s3.storage_options, "virtual_hosted_style_request": _PLANTED}
    with _raises_without_secrets(SettingsError, "a storage option has an impossible value"):
        ObjectStore(Location(f"s3://{bucket}", options)).check()


def test_no_server_listens(s3: S3Server) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        options = {**s3.storage_options, "endpoint": endpoint, "secret_access_key": _PLANTED}
        clock = SystemClock()
        start = clock.monotonic()
        with _raises_without_secrets(StorageUnavailableError, "cannot be reached: the connection was refused"):
            ObjectStore(Location("s3://raw", options)).check()
        assert clock.monotonic() - start < 20


@pytest.mark.more
def test_a_server_that_never_answers_is_given_up_within_a_minute(s3: S3Server) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        options = {**s3.storage_options, "endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        clock = SystemClock()
        start = clock.monotonic()
        with _raises_without_secrets(StorageUnavailableError, "did not answer in time"):
            ObjectStore(Location("s3://raw", options)).check()
        assert clock.monotonic() - start < 50


@pytest.mark.parametrize(
    ("error", "kind", "match"),
    [
        (GenericError("Generic S3 error: ... status code: 503 Slow Down"), StorageUnavailableError, "answered 503;"),
        (GenericError("Generic LocalFileSystem error: Permission denied (os error 13)"), AccessDeniedError, "denied"),
        (GenericError("... 301 ... status: 301, body: <Code>PermanentRedirect</Code>"), SettingsError, "region"),
        (GenericError("GET http://169.254.169.254/latest error sending request"), AccessDeniedError, "no credentials"),
        (GenericError("source: TimedOut"), StorageUnavailableError, "did not answer in time"),
        (GenericError("... status: 400 Bad Request: <Code>ExpiredToken</Code>"), AccessDeniedError, "400 ExpiredToken"),
        (PreconditionError("status: 412"), ObjectChanged, "has changed since it was listed"),
        (NotSupportedError("no"), StorageUnavailableError, "the request failed"),
    ],
)
def test_what_this_machine_cannot_provoke(error: Exception, kind: type[SlackwaterError], match: str) -> None:
    error.args = (f"{error.args[0]} https://host/k?X-Amz-Signature={_PLANTED} <AWSAccessKeyId>{_PLANTED}<",)
    ours = translated(error, Location("s3://raw/in"), "a.csv")
    assert type(ours) is kind
    assert match in str(ours) and "s3://raw/in/a.csv" in str(ours)
    assert _PLANTED not in str(ours)


@pytest.mark.parametrize(
    "name", ["AccessDenied.csv", "NoSuchBucket", "Not found", "os error 28", "credential provider"]
)
def test_a_name_of_an_object_is_no_sign_of_a_fault(name: str) -> None:
    error = GenericError(f"Generic S3 error: Error performing GET http://h/raw/in/{name}: status code: 503")
    ours = translated(error, Location("s3://raw/in"), name)
    assert type(ours) is StorageUnavailableError and "answered 503;" in str(ours)


@pytest.mark.parametrize("code", DENIED_CODES)
def test_refused_credentials_are_the_same_fault_for_a_source_and_for_a_root(code: str) -> None:
    error = GenericError(f"Generic S3 error: ... status: 400 Bad Request: <Code>{code}</Code>")
    location = Location("s3://raw/in")
    assert type(translated(error, location, "a.csv")) is type(storage_error(error, location)) is AccessDeniedError


def test_read_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(UnreadableFile("bad", 7)))
    assert (error.reason, error.row, str(error)) == ("bad", 7, "row 7: bad")
    assert str(pickle.loads(pickle.dumps(ObjectChanged("x has changed")))) == "x has changed"


@pytest.mark.parametrize("name", ["NotPartial.csv", "UnableToCanonicalize/a.csv", "169.254.169.254.log"])
def test_the_name_of_an_object_does_not_look_like_a_fault(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    client = S3Store(
        "b", endpoint=f"http://127.0.0.1:{port}", region="x", access_key_id="x", secret_access_key="x",
        client_options={"allow_http": True}, retry_config={"max_retries": 0},
    )  # fmt: skip
    with pytest.raises(StorageUnavailableError, match="the connection was refused"):
        ask_store(lambda: obstore.get_range(client, name, start=0, length=4), Location("s3://b"), name)


@pytest.mark.parametrize("name", ["invalid path.csv", "os error 13.csv"])
def test_the_name_in_an_answer_does_not_look_like_a_fault(name: str) -> None:
    text = f"status code: 503 Service Unavailable: <Error><Code>SlowDown</Code><Key>{name}</Key></Error>"
    with pytest.raises(StorageUnavailableError, match="503 SlowDown"):
        raise translated(GenericError(text), Location("s3://b"), name)
