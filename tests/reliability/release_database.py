"""The database of the release before, of either kind, by its URL: what is read in it, and its whole as text."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg

FOLDER = Path(__file__).parent / "data"
SQLITE = "sqlite:///"


def file_for(url: str) -> Path:
    """Where the text of a database of this kind is kept."""
    return FOLDER / f"last_release_{'sqlite' if url.startswith(SQLITE) else 'postgresql'}.sql.gz"


def _connect_sqlite(url: str) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(url.removeprefix(SQLITE), timeout=30))


def read_database(url: str, query: str) -> list[tuple]:
    if url.startswith(SQLITE):
        with _connect_sqlite(url) as database:
            return database.execute(query).fetchall()
    with psycopg.connect(url) as server:
        return server.execute(query).fetchall()


def change_database(url: str, statements: str) -> None:
    if url.startswith(SQLITE):
        with _connect_sqlite(url) as database:
            database.executescript(statements)
    else:
        with psycopg.connect(url) as server:
            server.execute(statements)


def dump_database(url: str) -> str:
    """Statements that make an empty database the same."""
    if url.startswith(SQLITE):
        with _connect_sqlite(url) as database:
            return "\n".join(database.iterdump())
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in found.splitlines() if not line.startswith(("--", "\\")))


def keep_database(url: str) -> Path:
    """Write its text to its file."""
    file_for(url).write_bytes(gzip.compress(dump_database(url).encode(), mtime=0))
    return file_for(url)


def restore_database(url: str) -> None:
    """Make an empty database what the release has left."""
    change_database(url, gzip.decompress(file_for(url).read_bytes()).decode())
