"""What the server is told to start in its workers: with all that a worker imports, which takes most of a start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cambist.cli.imports import collector_off, import_jwt, left_out

if TYPE_CHECKING:
    from .worker import Worker


def worker() -> Worker:
    """Return one worker's ASGI application. Called in the worker's process."""
    return _worker(for_operators=False)


def operators_worker() -> Worker:
    """Return the application of the address that operators have to themselves."""
    return _worker(for_operators=True)


def _worker(*, for_operators: bool) -> Worker:
    # Litestar would take a class of it for pages that we do not have, and pydantic along: twelve megabytes.
    with collector_off(), left_out("advanced_alchemy.service"):
        import_jwt()
        from .worker import worker as made  # noqa: PLC0415  see collector_off
    return made(for_operators=for_operators)
