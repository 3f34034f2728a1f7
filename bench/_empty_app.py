"""An empty Litestar route, served as the gateway serves its own: what a public read is measured against."""

from __future__ import annotations

import sys

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.log import LogLevels
from litestar import Litestar, get

from cambist_web.server import BACKLOG, REQUESTS_AT_ONCE_MAX


@get("/empty")
async def nothing() -> None:
    """Answer with nothing."""


def app() -> Litestar:
    """Return the application of one worker."""
    return Litestar([nothing], openapi_config=None, logging_config=None)


if __name__ == "__main__":
    server = Granian(
        "_empty_app:app",
        factory=True,
        address="127.0.0.1",
        port=int(sys.argv[1]),
        interface=Interfaces.ASGI,
        workers=int(sys.argv[2]),
        http=HTTPModes.http1,
        loop=Loops.uvloop,
        websockets=False,
        backlog=BACKLOG,
        backpressure=REQUESTS_AT_ONCE_MAX,
        log_level=LogLevels.warning,
    )
    print("ready", flush=True)
    server.serve()
