"""A catalog of Iceberg behind its REST protocol, on loopback: PyIceberg's own, in SQLite, answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import ConfigResponse, CreateTableRequest, NamespaceResponse, TableResponse
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table

_CODES = {
    NoSuchNamespaceError: HTTPStatus.NOT_FOUND,
    NoSuchTableError: HTTPStatus.NOT_FOUND,
    NamespaceAlreadyExistsError: HTTPStatus.CONFLICT,
    TableAlreadyExistsError: HTTPStatus.CONFLICT,
    CommitFailedException: HTTPStatus.CONFLICT,
}


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests that a writer and a reader of tables send."""

    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        try:
            code, body = HTTPStatus.OK, self._asked()
        except tuple(_CODES) as error:
            code = _CODES[type(error)]
            body = f'{{"error": {{"message": "no", "type": "{type(error).__name__}", "code": {code.value}}}}}'
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    def _asked(self) -> str:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        catalog, parts = self.server.catalog, [unquote(each) for each in self.path.partition("?")[0].split("/")[2:]]
        namespace = tuple(parts[1].split("\x1f")) if len(parts) > 1 else ()
        match self.command, parts:
            case "GET", ["config"]:
                return ConfigResponse().model_dump_json(by_alias=True)
            case "POST", ["namespaces"]:
                made = NamespaceResponse.model_validate_json(text)
                catalog.create_namespace(made.namespace, made.properties)
                return made.model_dump_json(by_alias=True)
            case "GET" | "HEAD", ["namespaces", _]:
                found = NamespaceResponse(namespace=namespace, properties=catalog.load_namespace_properties(namespace))
                return found.model_dump_json(by_alias=True)
            case "POST", ["namespaces", _, "tables"]:
                wanted = CreateTableRequest.model_validate({"location": None, **json.loads(text)})
                table = catalog.create_table(
                    (*namespace, wanted.name), wanted.table_schema, wanted.location, properties=wanted.properties
                )
                return _loaded(table)
            case "GET", ["namespaces", _, "tables", name]:
                return _loaded(catalog.load_table((*namespace, name)))
            case "POST", ["namespaces", _, "tables", name]:
                change, table = CommitTableRequest.model_validate_json(text), catalog.load_table((*namespace, name))
                done = catalog.commit_table(table, change.requirements, change.updates)
                if self.server.repeats:
                    done = catalog.commit_table(table, change.requirements, change.updates)
                return CommitTableResponse(
                    metadata=done.metadata, **{"metadata-location": done.metadata_location}
                ).model_dump_json(by_alias=True)
        raise NoSuchTableError(f"{self.command} {self.path} is not known here")


class _Server(ThreadingHTTPServer):
    """Keeps the catalog, and what was asked."""

    def __init__(self, directory: str, *, repeats: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.catalog = load_catalog(
            "behind", type="sql", uri=f"sqlite:///{directory}/behind.db", warehouse=f"file://{directory}/warehouse"
        )
        self.requests: list[str] = []
        self.repeats = repeats


def _loaded(table: Table) -> str:
    found = TableResponse.model_validate({"metadata-location": table.metadata_location, "metadata": table.metadata})
    return found.model_dump_json(by_alias=True)


@contextmanager
def rest_catalog(directory: str, *, repeats: bool = False) -> Iterator[tuple[str, list[str]]]:
    """The URL of a catalog whose tables are below a directory, and the list of received requests.

    Args:
        directory: the directory of the tables.
        repeats: whether each commit is done twice, as by a gateway that lost the first answer.
    """
    with _Server(directory, repeats=repeats) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.requests
        finally:
            server.shutdown()
            thread.join()
