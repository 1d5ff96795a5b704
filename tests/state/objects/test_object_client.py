"""The endpoint of a location: from an option, else from the environment."""

from __future__ import annotations

import pytest

from state.errors import SettingsError
from state.lance.lance_access import lance_options
from state.location import Location
from state.objects.object_client import endpoint_of, object_client

SERVER = "http://127.0.0.1:8333"


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:8333", "localhost", "s3://lake", "http://", "https:///x"])
def test_an_endpoint_that_is_no_url_is_refused_by_the_name_of_who_says_it(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Location("s3://lake/x", {"endpoint": endpoint})
    for client in (object_client, lance_options):
        with pytest.raises(
            SettingsError, match=r"s3://lake/x: the storage option endpoint is .* give http://HOST:PORT"
        ):
            client(given)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    for client in (object_client, lance_options):
        with pytest.raises(SettingsError, match="the environment variable AWS_ENDPOINT_URL is"):
            client(Location("s3://lake/x"))
    assert endpoint_of(Location("s3://lake/x", {"endpoint": SERVER})) == SERVER, "an option counts before it"


def test_an_endpoint_without_tls_is_allowed_to_both_clients_whoever_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert endpoint_of(Location("s3://lake/x")) == ""
    assert "allow_http" not in (lance_options(Location("s3://lake/x")) or {})
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        with monkeypatch.context() as there:
            there.setenv(name, SERVER)
            assert endpoint_of(Location("s3://lake/x")) == SERVER
            assert (lance_options(Location("s3://lake/x")) or {})["allow_http"] == "true"
    assert (lance_options(Location("s3://lake/x", {"endpoint": SERVER})) or {})["allow_http"] == "true"
