"""Catalog of a published Iceberg table, as PyIceberg opens it."""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.utils.config import Config, merge_config

from slackwater.plugins.publish.targets import Iceberg
from state.errors import SettingsError
from state.location import Location
from state.objects.object_client import endpoint_of

_CATALOG = "slackwater"


def iceberg_catalog(target: Iceberg) -> Catalog:
    """The catalog that the target names, the configured catalog, or the catalog of a local directory.

    Raises:
        SettingsError: no catalog is configured, or PyIceberg does not understand its properties.
        RESTError, SQLAlchemyError, OSError: the catalog refuses, or does not answer.
    """
    properties = dict(target.catalog or {})
    configured = Config().get_catalog_config(_CATALOG) or {}
    if not properties and not configured:
        if target.location is None or not target.location.is_local:
            raise SettingsError(
                f"{target} needs a catalog: give `catalog`, for example type=rest and uri=https://HOST, or configure "
                f"PyIceberg's catalog {_CATALOG!r}"
            )
        directory = target.location.path.parent
        directory.mkdir(parents=True, exist_ok=True)
        properties = {"type": "sql", "uri": f"sqlite:///{directory / 'catalog.db'}"}
    properties = {**_access(target.location), **properties}
    merged: dict[str, Any] = merge_config(configured, {**properties})
    try:
        if _is_rest(merged):
            from slackwater.plugins.publish.timed_catalogs import TimedRestCatalog

            return TimedRestCatalog(_CATALOG, **merged)
        if _is_sql(merged):
            from slackwater.plugins.publish.timed_catalogs import TimedSqlCatalog

            return TimedSqlCatalog(_CATALOG, **merged)
        return load_catalog(_CATALOG, **properties)
    except (ValueError, KeyError, ModuleNotFoundError) as error:
        raise SettingsError(f"{target}: PyIceberg does not take these properties of the catalog: {error}") from None


def _is_rest(properties: dict[str, Any]) -> bool:
    """True for properties for which PyIceberg takes its REST catalog."""
    kind = properties.get("type")
    if kind is None and "py-catalog-impl" not in properties:
        return str(properties.get("uri", "")).startswith("http")
    return str(kind).lower() == "rest" and "uri" in properties


def _is_sql(properties: dict[str, Any]) -> bool:
    """True for properties for which PyIceberg takes its SQL catalog."""
    kind = properties.get("type")
    if kind is None and "py-catalog-impl" not in properties:
        return str(properties.get("uri", "")).startswith(("sqlite", "postgresql"))
    return str(kind).lower() == "sql" and "uri" in properties


def _access(location: Location | None) -> dict[str, str]:
    """The endpoint of the environment, as PyIceberg names it; it finds keys and region there by itself."""
    endpoint = endpoint_of(location) if location is not None and location.scheme == "s3" else ""
    return {"s3.endpoint": endpoint} if endpoint else {}
