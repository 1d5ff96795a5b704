"""DuckDB that runs the SQL of others: no file, no network, no extension, no other settings."""

from __future__ import annotations

from typing import Any

from state.errors import UsageError

# Without a directory DuckDB spills nothing; by default it would into the working directory.
_WITHOUT_SPILLING = "SET temp_directory = ''; "
_CONFINED = (
    "SET TimeZone = 'UTC'; SET autoinstall_known_extensions = false; "
    "SET autoload_known_extensions = false; SET allow_community_extensions = false; "
    "SET enable_external_access = false; SET python_enable_replacements = false; "
)
_NO_FILES, _LOCKED = "SET disabled_filesystems = 'LocalFileSystem'; ", "SET lock_configuration = true"


def unconfined_duckdb(max_memory_bytes: int | None, threads: int | None = None, **options: Any) -> Any:
    """A new DuckDB in memory, or over the file `database`; `confine` it before the SQL of others.

    Args:
        max_memory_bytes: the largest memory, as DuckDB counts it; None for no limit.
        threads: threads for one statement; None for one for each core.
        options: further arguments of `duckdb.connect`.

    Raises:
        UsageError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise UsageError("SQL over views needs DuckDB; pip install 'slackwater[verify]'") from None
    # By default DuckDB 2 starts 8 threads for files, which it never reads here.
    config: dict[str, Any] = {"async_threads": "1"}
    if threads is not None:
        config["threads"] = str(threads)
    if max_memory_bytes is not None:
        config["memory_limit"] = f"{max(1, max_memory_bytes // 1024)}KiB"
    return duckdb.connect(config=config, **options)


def confine(connection: Any) -> None:
    """Takes files, network and settings away from a DuckDB, for good.

    Args:
        connection: any connection of it.
    """
    connection.execute(_WITHOUT_SPILLING + _CONFINED + _NO_FILES + _LOCKED)


def confine_to(connection: Any, allowed_directories: str, temp_directory: str) -> None:
    """The same for a DuckDB that still reads some files, and spills into a directory.

    Args:
        connection: any connection of it.
        allowed_directories: a list of directories, as a literal of SQL.
        temp_directory: the directory for what exceeds its memory, as a literal of SQL.
    """
    connection.execute(
        f"SET temp_directory = {temp_directory}; SET allowed_directories = {allowed_directories}; {_CONFINED}{_LOCKED}"
    )
