"""Planted secrets are looked for where they must not be (G7)."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import actors
import slackwater
import slackwater as sw
import spark_bridge
import state
from actors.formats.options import Json
from actors.objects.object_store import ObjectStore
from actors.objects.web_options import WebOptions
from actors.sources.source import SourceDefinition
from actors.telemetry.logging import redact
from slackwater.cli.options import storage_options
from slackwater.plugins.serve.log_in.authentication import Password
from slackwater.plugins.serve.messages import CancelRequest
from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock, SystemClock
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.objects.storage_error import storage_error
from state.ownership.owner import Ownership

_PLANTED = "PLANTEDxSECRETx0123456789"
_OPTIONS = {
    "access_key_id": _PLANTED + "a",
    "secret_access_key": _PLANTED + "b",
    "session_token": _PLANTED + "c",
    "aws_secret_access_key": _PLANTED + "d",
}
_URL = f"s3://user:{_PLANTED}@bucket-name/in?X-Amz-Signature={_PLANTED}&X-Amz-Credential={_PLANTED}"


def _pipeline(root: str = _URL) -> sw.Pipeline:
    pipeline = sw.Pipeline("p", root, storage_options=_OPTIONS)
    pipeline.source("s", _URL, format="json", schema="a bigint", storage_options=_OPTIONS)
    pipeline.view("v", "SELECT a FROM s")
    return pipeline


def _shown(value: object) -> str:
    return f"{value!r} {value!s} {value:}" if type(value).__format__ is object.__format__ else f"{value!r} {value!s}"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Location(_URL, _OPTIONS),
        lambda: Location(_URL, _OPTIONS).child("x"),
        lambda: SourceDefinition(name="s", location=Location(_URL, _OPTIONS), format=Json()),
        lambda: SourceDefinition(name="s", location=Location(_URL, _OPTIONS), format=Json()).to_json(),
        lambda: ObjectStore(Location(_URL, _OPTIONS)),
        lambda: _pipeline(),
        lambda: vars(_pipeline()),
        lambda: _pipeline().root,
        lambda: sw.Settings(),
        lambda: sw.Settings(
            ray=sw.settings.RaySettings(runtime_env={"env_vars": {"MARKER": _PLANTED}}),
            spark=sw.settings.SparkSettings(configs={"spark.hadoop.fs.s3a.secret.key": _PLANTED}),
        ),
        lambda: sw.Alert("quarantined files > 0", to=f"https://user:{_PLANTED}@hooks.example.com/T0/{_PLANTED}"),
        lambda: sw.Alert("quarantined files > 0", to=["true", "-H", f"Authorization: Bearer {_PLANTED}"]),
        lambda: sw.OpenLineage(f"https://user:{_PLANTED}@lineage.example.com/{_PLANTED}?api_key={_PLANTED}"),
        lambda: sw.Move(f"s3://user:{_PLANTED}@bucket/x", storage_options=_OPTIONS),
        lambda: sw.Delta(f"s3://user:{_PLANTED}@bucket/x", _OPTIONS),
        lambda: sw.Iceberg(f"s3://user:{_PLANTED}@bucket/x/t", {"token": _PLANTED}),
        lambda: sw.ParquetFiles(f"s3://user:{_PLANTED}@bucket/x", _OPTIONS),
        lambda: WebOptions(proxy_url=f"http://user:{_PLANTED}@proxy:3128"),
        lambda: CancelRequest(1, _PLANTED.encode()),
        lambda: Password.of(_PLANTED),
    ],
)
def test_no_repr_shows_a_secret(make: Callable[[], object]) -> None:
    assert _PLANTED not in _shown(make())


def test_the_repr_of_a_receiver_shows_its_host() -> None:
    assert repr(sw.Alert("held", to="https://hooks.example.com/T0/B0")) == (
        "Alert(when='held', to='https://hooks.example.com/***', name='held')"
    )
    assert repr(sw.Alert("held")) == "Alert(when='held', to='log', name='held')"
    assert "to='/tmp/events.json'" in repr(sw.OpenLineage("/tmp/events.json"))


_OFTEN_SECRET = {
    *("api_key", "catalog", "configs", "environment", "headers", "password", "properties", "proxy_url", "runtime_env"),
    *("secret", "storage_options", "token", "uri", "url"),
}
# Their URLs come from a Location, which has no credentials, or are refused with credentials.
_PLAIN = {"Location.url", "QueueProgress.url", "SourcePlan.url", "PublishedPlace.url", "PublishedPlace.catalog"}
_PLAIN |= {"RecoveredState.catalog", "Moment.catalog"}


def test_fields_that_often_hold_secrets_are_masked_in_every_dataclass() -> None:
    shown = set()
    for package in (state, actors, spark_bridge, slackwater):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__") or found.name.startswith("slackwater.testing."):
                continue
            module = importlib.import_module(found.name)
            for kind in vars(module).values():
                if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__:
                    # Only the repr that dataclasses generate is wrapped.
                    is_generated = hasattr(kind.__repr__, "__wrapped__")
                    names = [each.name for each in fields(kind) if each.repr and each.name in _OFTEN_SECRET]
                    shown |= {f"{kind.__qualname__}.{name}" for name in names if is_generated}
    assert shown - _PLAIN == set(), "mask these fields: field(repr=False), or actors.telemetry.masked_repr"


def _failure(call: Callable[[], object]) -> str:
    with pytest.raises(sw.SlackwaterError) as caught:
        call()
    error = caught.value
    # What a log shows: the chain of causes, as far as it is not cut off.
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


@pytest.mark.parametrize(
    "option",
    ["secret_access_key", *(pytest.param(each, marks=pytest.mark.more) for each in ("access_key_id", "session_token"))],
)
def test_wrong_credentials_are_not_in_the_error(s3: S3Server, bucket: str, option: str) -> None:
    location = Location(f"s3://{bucket}/root", {**s3.storage_options, option: _PLANTED})
    for call in (
        ObjectStore(location).check,
        lambda: LanceStateStore.create_or_open(location, ManualClock()),
        lambda: LanceStateStore.open(location, ManualClock()),
        lambda: sw.open(location.url, location.storage_options).epochs(),
    ):
        if option == "session_token" and _accepts(call):
            continue
        text = _failure(call)
        assert _PLANTED not in text
        assert s3.storage_options["secret_access_key"] not in text


def _accepts(call: Callable[[], object]) -> bool:
    try:
        call()
    except sw.SlackwaterError:
        return False
    return True


def test_what_a_store_says_is_passed_on_without_the_secrets_in_it() -> None:
    location = Location("s3://bucket-name/in", {**_OPTIONS, "sas_token": ""})
    said = f"GET http://host/x?X-Amz-Signature={_PLANTED} with {_OPTIONS} failed"
    text = str(storage_error(OSError(said), location))
    assert _PLANTED not in text and "failed" in text


@pytest.mark.parametrize("place", ["no-such-bucket", "refused"])
def test_right_credentials_are_not_in_an_error_either(s3: S3Server, place: str) -> None:
    options = dict(s3.storage_options)
    if place == "refused":
        options |= {"endpoint": "http://127.0.0.1:9", "client_retry_timeout": "1", "client_max_retries": "0"}
    location = Location("s3://no-such-bucket/root", options)
    reading = replace(location, storage_options={k: v for k, v in options.items() if not k.startswith("client_")})
    for call in (
        ObjectStore(reading, max_attempts=1).check,
        lambda: LanceStateStore.create_or_open(location, ManualClock()),
    ):
        text = _failure(call)
        assert options["secret_access_key"] not in text and options["access_key_id"] not in text


def test_the_owner_file_and_the_store_of_state_hold_no_secret(s3: S3Server, bucket: str) -> None:
    root = Location(f"s3://{bucket}/root", s3.storage_options)
    owner = Ownership(root, SystemClock(), pipeline="p", run_id="r")
    owner.acquire()
    try:
        LanceStateStore.create(root, SystemClock()).take_over()
    finally:
        owner.release()
    stored = _everything(s3, bucket)
    assert any(key.endswith("owner.json") for key in stored) and len(stored) > 3
    for secret in (s3.storage_options["secret_access_key"], s3.storage_options["access_key_id"]):
        assert not [key for key, content in stored.items() if secret.encode() in content]


def _everything(s3: S3Server, bucket: str) -> dict[str, bytes]:
    client = s3.client()
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


_LOGGING = """
import sys, structlog
from actors.telemetry.logging import configure
from state.location import Location
configure("debug", json={json})
log = structlog.get_logger()
options, url, secret = {options!r}, {url!r}, {secret!r}
location = Location(url, options)
log.debug("opened", location=location, options=options, url=url, text=f"aws_secret_access_key={{secret}}")
try:
    raise OSError(f"GET {{url}} failed with {{options}}")
except OSError as error:
    log.exception("failed", error=error, storage_options=options)
"""


@pytest.mark.parametrize("as_json", [True, False])
def test_logs_at_debug_level_with_tracebacks_show_no_secret(as_json: bool) -> None:
    program = _LOGGING.format(json=as_json, options=_OPTIONS, url=_URL, secret=_PLANTED)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "opened" in ended.stderr and "failed" in ended.stderr and "Traceback" in ended.stderr
    # The traceback quotes the line of the program, not its values.
    assert _PLANTED not in ended.stderr
    if as_json:
        assert len([json.loads(line) for line in ended.stderr.splitlines()]) == 2


def test_options_with_a_prefix_are_masked_too() -> None:
    account = "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net"
    assert redact({account: _PLANTED}) == {account: "***"}
    for name in ("aws_access_key_id", "azure_storage_account_key", "google_service_account_key", "azure_client_secret"):
        assert redact({name: _PLANTED}) == {name: "***"}
        assert _PLANTED not in redact(f"{name}={_PLANTED}")


_SECRET_NAMES = [
    "azure_storage_master_key",
    "master_key",
    "azure_storage_access_key",
    "azure_storage_account_key",
    "AccountKey",
    "azure_storage_key",
    "azure_storage_sas_key",
    "azure_encryption_key",
    "connection_string",
    "aws_sse_customer_key_base64",
    "sse_customer_key_base64",
    "proxy_url",
    "bearer_token",
    "aws_bearer_token",
    "fabric_session_token",
    "google_service_account_key",
    "authorization",
    "Proxy-Authorization",
    "credential",
    "private_key",
    "api-key",
    "spark.hadoop.fs.s3a.secret.key",
    "s3.session-token",
]
_OTHER_NAMES = [
    *("aws_endpoint", "region", "skip_signature", "sse_kms_key_id", "web_identity_token_file", "account_name"),
    *("service_account", "google_application_credentials", "credential_type", "key", "partition_key", "max_tokens"),
]


@pytest.mark.parametrize("name", _SECRET_NAMES)
def test_secret_of_this_name_is_masked_and_refused_on_the_command_line(name: str) -> None:
    assert redact({name: _PLANTED}) == {name: "***"}
    for text in (
        f"{name}={_PLANTED}",
        f"{name}: {_PLANTED}",
        f"{{'{name}': '{_PLANTED}'}}",
        f'\\"{name}\\": \\"{_PLANTED}\\"',
    ):
        assert _PLANTED not in redact(text)
    with pytest.raises(
        sw.errors.UsageError, match="is refused: secrets are not taken from the command line"
    ) as refused:
        storage_options([f"{name}={_PLANTED}"])
    assert _PLANTED not in str(refused.value)


@pytest.mark.parametrize("name", _OTHER_NAMES)
def test_option_of_this_name_is_neither_masked_nor_refused(name: str) -> None:
    assert redact({name: "shown"}) == {name: "shown"}
    assert redact(f"{name}=shown") == f"{name}=shown"
    assert storage_options([f"{name}=shown"]) == {name: "shown"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"s3://user:p@{_PLANTED}@bucket/x", "s3://***@bucket/x"),
        (f"GET https://h/?sv=1&sig={_PLANTED} failed", "GET https://h/?sv=1&sig=*** failed"),
        (f"https://h/?X-Goog-Signature={_PLANTED}&a=b", "https://h/?X-Goog-Signature=***&a=b"),
        (f"https://h/?X-Goog-Credential={_PLANTED}%2Fx", "https://h/?X-Goog-Credential=***"),
        (f"https://h/?x-amz-security-token={_PLANTED}", "https://h/?x-amz-security-token=***"),
        (f"https://h/?AWSAccessKeyId={_PLANTED}&Signature={_PLANTED}", "https://h/?AWSAccessKeyId=***&Signature=***"),
        (f"https://h/?Policy={_PLANTED}&Key-Pair-Id={_PLANTED}", "https://h/?Policy=***&Key-Pair-Id=***"),
        (f"https://h/?access_token={_PLANTED}", "https://h/?access_token=***"),
        (f"Authorization: Bearer {_PLANTED}", "Authorization: ***"),
        (f"{{'Authorization': 'Bearer {_PLANTED}', 'a': 'b'}}", "{'Authorization': '***', 'a': 'b'}"),
        (f"authorization: Basic {_PLANTED}\nnext", "authorization: ***\nnext"),
        (f"password: two {_PLANTED}", "password: ***"),
        (f'{{"password": "it\'s {_PLANTED}", \'a\': 1}}', '{"password": "***", \'a\': 1}'),
        (f"AWS4-HMAC-SHA256 Credential=AKIA/x, Signature={_PLANTED}", "AWS4-HMAC-SHA256 Credential=***, Signature=***"),
        (f"AccountName=a;AccountKey={_PLANTED}==;Suffix=b", "AccountName=a;AccountKey=***;Suffix=b"),
        (f"SharedAccessSignature={_PLANTED}", "SharedAccessSignature=***"),
        (
            "syntax error: unexpected token ',' in design=2, user@host",
            "syntax error: unexpected token ',' in design=2, user@host",
        ),
        ("see http://a:9000/x, then mail b@c.de", "see http://a:9000/x, then mail b@c.de"),
    ],
)
def test_secret_in_a_text_is_masked_and_the_rest_is_kept(text: str, masked: str) -> None:
    assert redact(text) == masked


@pytest.mark.parametrize("value", [f"https://h/?sig={_PLANTED}", f"http://user:{_PLANTED}@h:9000"])
def test_url_with_a_secret_in_it_is_refused_on_the_command_line(value: str) -> None:
    with pytest.raises(sw.errors.UsageError, match="-o endpoint is refused: its value has a secret in it") as refused:
        storage_options([f"endpoint={value}"])
    assert _PLANTED not in str(refused.value)


@pytest.mark.ray
def test_a_run_shows_its_secrets_nowhere(
    session: Any, s3: S3Server, bucket: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The store, the logs of every process, Ray's table of actors, command lines, and Spark's configuration."""
    import ray

    secrets = [s3.storage_options["secret_access_key"], s3.storage_options["access_key_id"], _PLANTED]
    secrets.append(os.environ["_SPARK_AUTH_SECRET"])
    s3.put(bucket, "in/a.json", b'{"a": 1}\n')
    s3.put(bucket, "in/bad.json", b"{broken\n")
    pipeline = sw.Pipeline("p", f"s3://user:{_PLANTED}@{bucket}/root", storage_options=s3.storage_options)
    pipeline.source(
        "s",
        f"s3://user:{_PLANTED}@{bucket}/in?X-Amz-Signature={_PLANTED}",
        format="json",
        schema="a bigint",
        discovery=sw.Listing(interval_s=0.1),
    )
    pipeline.view("v", "SELECT a, count(*) AS n FROM s GROUP BY a")
    with pipeline.start() as run:
        run.wait(until="caught_up")
        # All that the dashboard's table of actors is made of.
        accessor = ray._private.state.state._connect_and_get_accessor()
        actors = b"".join(accessor.get_actor_table(None, None))
        shown = f"{run!r} {run.status()!r} {run.report()!r} {pipeline!r} {vars(pipeline)!r} {vars(run)!r}"
        commands = b"".join(_read(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
        spark = f"{session.sparkContext.getConf().getAll()} {session.conf!r}"
        java = session._jvm.java.lang.System.getProperties().toString()
    store = sw.open(pipeline.root.url, s3.storage_options)
    snapshot = store.snapshot()
    shown += f"{store!r} {snapshot!r} {snapshot.view('v')!r} {store.ledger.files('s')} {store.epochs()}"
    shown += repr(store.ledger.why(f"s3://{bucket}/in/bad.json"))
    logs = Path(ray._private.worker._global_node.get_session_dir_path()) / "logs"
    printed = capfd.readouterr()
    places: dict[str, bytes] = {
        **_everything(s3, bucket),
        **{str(path): _read(path) for path in logs.rglob("*") if path.is_file()},
        "the table of actors": actors,
        "command lines": commands,
        "reprs": shown.encode(),
        "Spark": (spark + java).encode(),
        "output": (printed.out + printed.err).encode(),
    }
    assert b"FetchActor" in actors and b"python" in commands and len(places) > 20
    for secret in secrets:
        assert [place for place, content in places.items() if secret.encode() in content] == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
