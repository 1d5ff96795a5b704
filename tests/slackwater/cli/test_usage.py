"""Tests of wrong arguments: one line with the error and the next step, and exit code 2."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from slackwater import __version__
from slackwater.cli.options import storage_options
from slackwater.cli.target import load_pipeline
from slackwater.testing.servers.s3_server import S3Server
from state.errors import UsageError
from state.location import Location
from state.ownership.owner import read_owner
from tests.slackwater.cli import command
from tests.slackwater.cli.called_command import slackwater


def test_version_is_the_package_version() -> None:
    ended = command.slackwater("--version")
    assert (ended.code, ended.out) == (0, f"slackwater {__version__}\n")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        pytest.param("app.py", "give FILE.py:NAME", marks=pytest.mark.more),
        pytest.param("missing.py:pipeline", "there is no file missing.py", marks=pytest.mark.more),
        pytest.param("no.such.module:pipeline", "there is no module no.such.module", marks=pytest.mark.more),
        ("app.py:nothing", "app.py has no 'nothing'; it has app.py:made, app.py:shop"),
        pytest.param(
            "app.py:number", "app.py:number is of type int: name a slackwater.Pipeline", marks=pytest.mark.more
        ),
    ],
)
def test_a_target_that_is_no_pipeline_is_refused_in_one_line(tmp_path: Path, target: str, said: str) -> None:
    (tmp_path / "app.py").write_text(
        "import slackwater as sw\nnumber = 7\nshop = sw.Pipeline('shop', root='views')\n"
        "def made():\n    return shop\ndef view(orders):\n    return orders\n",
        encoding="utf-8",
    )
    ended = command.slackwater("run", target, cwd=tmp_path)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.startswith("error: ") and ended.err.count("\n") == 1
    assert ended.out == ""


@pytest.mark.more
def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    ended = command.slackwater("run", "missing.py:pipeline", "--debug", cwd=tmp_path)
    assert ended.code == 2
    assert "Traceback" in ended.err
    assert ended.err.splitlines()[-1].startswith("error: there is no file")


@pytest.mark.more
def test_an_error_in_the_users_module_is_one_line_too(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("raise ValueError('no such thing')\n", encoding="utf-8")
    ended = command.slackwater("run", "app.py:pipeline", cwd=tmp_path)
    assert ended.code == 2
    assert ended.err == f"error: {tmp_path / 'app.py'}:1: ValueError: no such thing\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "sw.ParquetFiles('a', intervall_s=3)",
            "unexpected keyword argument 'intervall_s'; did you mean 'interval_s'?",
        ),
        (
            "sw.settings.FetchSettings(num_fetcher=3)",
            "unexpected keyword argument 'num_fetcher'; did you mean 'num_fetchers'?",
        ),
        (
            "p.source('a', 'b', format='csv', patern='*')",
            "unexpected keyword argument 'patern'; did you mean 'pattern'?",
        ),
        (
            "p.source('a', 'b', format='csv', max_removed_share=1)",
            "keyword argument 'max_removed_share'; did you mean on_change=sw.Replace(max_removed_share=...)?",
        ),
        (
            "p.source('a', 'b', format='csv', schema_evolution='widen')",
            "keyword argument 'schema_evolution'; did you mean schema=sw.Schema(evolution=...)?",
        ),
        (
            "p.source('a', 'b', format='csv', interval_s=9)",
            "keyword argument 'interval_s'; did you mean discovery=sw.Listing(interval_s=...)?",
        ),
        ("p.dry_run(price=1)", "keyword argument 'price'; did you mean 'prices'?"),
        ("p.run(takeovers=True)", "keyword argument 'takeovers'; did you mean 'takeover'?"),
        ("p.explain(view='v')", "keyword argument 'view'"),
        ("p.source('a', 'b', format='xml')", "source a: format 'xml' is not known"),
        ("def p(: pass", "SyntaxError: "),
        ("def made():\n    return 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_mistake_in_the_users_module_has_its_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, said: str
) -> None:
    app = tmp_path / "mistaken.py"
    app.write_text(f"import slackwater as sw\np = sw.Pipeline('x', root='root')\n{lines}\n", encoding="utf-8")
    # Loading makes the directory importable, and keeps the module.
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setitem(sys.modules, "mistaken", None)
    with pytest.raises(UsageError, match=re.escape(said)) as raised:
        load_pipeline(f"{app}:{'made' if 'made' in lines else 'p'}")
    assert str(raised.value).startswith(f"{app}:{4 if 'made' in lines else 3}: ")


@pytest.mark.more
def test_a_module_that_imports_a_missing_one_is_not_called_missing_itself(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import not_installed_anywhere\n", encoding="utf-8")
    ended = command.slackwater("run", "app:pipeline", cwd=tmp_path)
    assert ended.code == 2
    assert "not_installed_anywhere" in ended.err and "there is no module" not in ended.err


@pytest.mark.parametrize(
    "arguments", [("run",), ("run", "a:b", "--until", "tomorrow"), ("files", "r", "--status", "lost"), ("nothing",)]
)
def test_arguments_that_do_not_fit_are_usage_errors(arguments: tuple[str, ...]) -> None:
    assert slackwater(*arguments).code == 2


@pytest.mark.parametrize("kind", ["status", "epochs", "files", "explain"])
def test_a_root_that_is_not_there_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "empty").mkdir()
    ended = slackwater(kind, str(tmp_path / "empty"))
    assert ended.code == 1
    assert str(tmp_path / "empty") in ended.err
    assert ended.err.startswith("error: ") and ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "variable"),
    [
        ("secret_access_key=hunter2", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY=hunter2", "AWS_SECRET_ACCESS_KEY"),
        ("session_token=hunter2", "AWS_SESSION_TOKEN"),
        ("access_key_id=hunter2", "AWS_ACCESS_KEY_ID"),
        ("azure_storage_account_key=hunter2", "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
def test_secrets_on_the_command_line_are_refused_and_not_repeated(option: str, variable: str) -> None:
    ended = slackwater("status", "s3://bucket/root", "-o", option)
    assert ended.code == 2
    assert variable in ended.err
    assert "hunter2" not in ended.err + ended.out


def test_the_usual_variables_of_the_environment_reach_a_bucket(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = s3.storage_options
    monkeypatch.setenv("AWS_ENDPOINT_URL", options["endpoint"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["secret_access_key"])
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert read_owner(Location(f"s3://{bucket}/root")) is None
    ended = command.slackwater("status", f"s3://{bucket}/root")
    assert ended.code == 1 and f"s3://{bucket}/root" in ended.err and "cannot be" not in ended.err


def test_storage_options_are_read_in_pairs() -> None:
    assert storage_options(["endpoint=http://h:1/?a=b", "ALLOW_HTTP=true"]) == {
        "endpoint": "http://h:1/?a=b",
        "allow_http": "true",
    }
    assert storage_options(None) == {}
    for wrong in (["region"], ["=x"], ["region=a", "region=b"]):
        with pytest.raises(UsageError, match="-o"):
            storage_options(wrong)
