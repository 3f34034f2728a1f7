"""What a database is asked, for tests of how much that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from cambist.db.engine import Database


@contextmanager
def statements(db: Database) -> Iterator[list[str]]:
    """Collect what is executed through this door until the block ends."""
    executed: list[str] = []

    def note(*call: object) -> None:
        executed.append(str(call[2]))

    event.listen(db.engine.sync_engine, "before_cursor_execute", note)
    yield executed
    event.remove(db.engine.sync_engine, "before_cursor_execute", note)
