"""Connections on which a statement of text goes to the driver, in SQLAlchemy's transaction and past the rest of it.

The rest takes this process longer than the driver: a context, a description of the columns that is made anew each time,
and a greenlet. To pass it by takes names that SQLAlchemy has for itself; what must stay is in the tests.
"""
# ruff: noqa: SLF001

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import lru_cache
from typing import Any, NoReturn, cast

from sqlalchemy import Connection, CursorResult
from sqlalchemy.engine import IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.util import greenlet_spawn


class _NoRows(Iterator[NoReturn]):
    """Refuses to give a row, where to give none would say that none was found."""

    def __next__(self) -> NoReturn:
        CursorResult._no_result_metadata._we_dont_return_rows()


class _Answer(IteratorResult[Any]):
    """The driver's rows, with all that Result does with rows; of CursorResult only what is set below."""

    def __init__(self, names: tuple[str, ...], rows: Sequence[Any], rowcount: int) -> None:
        """``rowcount`` is how many were found or changed, -1 where the server says nothing of rows."""
        if names:
            super().__init__(_columns(names), iter(rows))
        else:
            super().__init__(CursorResult._no_result_metadata, _NoRows())
        self.returns_rows = bool(names)
        self.rowcount = rowcount


class TextConnection(AsyncConnection):
    """SQLAlchemy's connection, except that a statement of text goes straight to the cursor that it has for the driver.

    Pool, transactions, prepared statements, errors, and when a connection is given up, are SQLAlchemy's.
    """

    async def exec_driver_sql(
        self,
        statement: str,
        parameters: Any = None,  # noqa: ANN401  SQLAlchemy's own
        execution_options: Mapping[str, Any] | None = None,
    ) -> CursorResult[Any]:
        """Run a statement whose parameters are written ``$1``. Raises what SQLAlchemy's own does."""
        values = () if parameters is None else parameters
        sync = self.sync_connection
        if sync is None or execution_options or not isinstance(values, tuple) or not _is_ready(sync):
            return await super().exec_driver_sql(statement, parameters, execution_options)
        try:
            answer = await _run(sync, statement, values)
        except BaseException as error:
            # It may close the connection, which is waited for in a greenlet.
            await greenlet_spawn(_raise, sync, error, statement, values)
            raise  # never reached: it raises
        return cast("CursorResult[Any]", answer)


class TextEngine(AsyncEngine):
    """An engine with such connections."""

    _connection_cls = TextConnection

    @asynccontextmanager
    async def opened(self, *, transaction: bool) -> AsyncIterator[AsyncConnection]:
        """Yield a connection, in a transaction or not, and end both as the engine without asyncio does.

        AsyncEngine takes four greenlets and a task for a transaction; the task, so that nothing cuts the closing short.
        But closing waits for nothing. Only COMMIT and ROLLBACK wait, and who is cancelled there gives the connection
        up, as with AsyncEngine.
        """
        begin = self.sync_engine.begin if transaction else self.sync_engine.connect
        begun, sync = await greenlet_spawn(_begin, begin)
        try:
            yield TextConnection(self, sync)
        except BaseException as error:
            await greenlet_spawn(begun.__exit__, type(error), error, error.__traceback__)
            raise
        else:
            await greenlet_spawn(begun.__exit__, None, None, None)


def _begin(
    begin: Callable[[], AbstractContextManager[Connection]],
) -> tuple[AbstractContextManager[Connection], Connection]:
    begun = begin()
    return begun, begun.__enter__()


def _is_ready(sync: Connection) -> bool:
    """Begin a transaction where there is none, as SQLAlchemy does; say whether a statement may be sent in it.

    It may not where SQLAlchemy has something to refuse or to tell: on a connection that is closed or given up, in a
    transaction or savepoint that has ended, and where somebody listens or statements are logged.
    """
    if sync.closed or sync.invalidated or sync._echo:
        return False
    if (sync._has_events or sync.engine._has_events) and (
        sync.dispatch.before_cursor_execute or sync.dispatch.after_cursor_execute
    ):
        return False
    block, savepoint = sync._trans_context_manager, sync.get_nested_transaction()
    if block is not None and not block._transaction_is_active():
        return False
    if savepoint is not None and not savepoint.is_active:
        return False
    # To begin sends nothing. Without it, a statement after the connection was given up would not be refused.
    return (sync.get_transaction() or sync.begin()).is_active


async def _run(sync: Connection, statement: str, values: tuple[Any, ...]) -> _Answer:
    cursor = cast("Any", sync.connection.dbapi_connection).cursor()
    cursor._invalidate_schema_cache_asof = cast("Any", sync.dialect)._invalidate_schema_cache_asof
    await cursor._prepare_and_execute(statement, values)
    names = tuple([column[0] for column in cursor.description or ()])
    return _Answer(names, cursor.fetchall(), cursor.rowcount)


def _raise(sync: Connection, error: BaseException, statement: str, values: tuple[Any, ...]) -> NoReturn:
    """Raise it in SQLAlchemy's words, once the connection is given up where SQLAlchemy does so."""
    dialect = cast("Any", sync.dialect)
    of_database = isinstance(error, dialect.dbapi.Error)
    if isinstance(error, dialect.dbapi.InvalidCachedStatementError | dialect.dbapi.InternalServerError):
        dialect._invalidate_schema_cache()
    try:
        raise error  # noqa: TRY301  it asks what is being handled, and this greenlet handles nothing yet
    except BaseException as raised:  # noqa: BLE001  it is raised again
        # With a statement, whatever it is would be told as an error of the database's.
        sync._handle_dbapi_exception(raised, statement if of_database else None, values, None, None)


@lru_cache(maxsize=2_000)
def _columns(names: tuple[str, ...]) -> SimpleResultMetaData:
    return SimpleResultMetaData(names)
