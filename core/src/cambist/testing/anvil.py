"""Finds anvil, starts it, asks it and stops it: the real EVM behind the local nodes that plugins are tested with."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
import msgspec

START_TIMEOUT_S: Final = 20.0
STOP_TIMEOUT_S: Final = 5.0

_LISTENING: Final = re.compile(rb"Listening on [0-9.]+:([0-9]+)")
_IN_MODULES: Final = Path("node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil")


class AnvilMissingError(RuntimeError):
    """There is no anvil on this machine."""


class RpcRefusedError(RuntimeError):
    """The node answered with an error."""


def find_anvil() -> Path:
    """Return anvil's path: ``CAMBIST_TEST_ANVIL``, else what npm installed under ``tests``, else what PATH has."""
    named = os.environ.get("CAMBIST_TEST_ANVIL")
    if named:
        return Path(named)
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            for binary in (folder / "tests" / _IN_MODULES, folder / _IN_MODULES):
                if binary.is_file():
                    return binary
    found = shutil.which("anvil")
    if found is None:
        raise AnvilMissingError("anvil is missing: run npm install in tests/, or name it in CAMBIST_TEST_ANVIL")
    return Path(found)


class AnvilClient:
    """Asks a node that somebody else runs; ``async with`` opens and closes the session."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, params: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - JSON
        """Return the result of one JSON-RPC call. Raises RpcRefusedError."""
        return _result(method, await self._post(_request(1, method, params)))

    async def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[Any]:
        """Return the results of calls that do not depend on each other: the node may run them in any order."""
        if not calls:
            return []
        requests = [_request(number, method, params) for number, (method, params) in enumerate(calls)]
        answers = {answer["id"]: answer for answer in await self._post(requests)}
        return [_result(method, answers[number]) for number, (method, _) in enumerate(calls)]

    async def snapshot(self) -> str:
        """Return the name of the present state."""
        name: str = await self.call("evm_snapshot")
        return name

    async def revert(self, name: str) -> None:
        """Go back to a snapshot, once. Waiting transactions are dropped.

        So is one that has just been mined: a node tells its receipt a moment before it takes it from its pool.
        """
        await self.call("anvil_dropAllTransactions")
        if not await self.call("evm_revert", [name]):
            raise RpcRefusedError(f"there is no snapshot {name}")

    async def _post(self, body: object) -> Any:  # noqa: ANN401 - JSON
        if self._session is None:
            raise RuntimeError("anvil is not running: use async with")
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self.url, data=msgspec.json.encode(body), headers=headers) as response:
            return msgspec.json.decode(await response.read())


class AnvilProcess(AnvilClient):
    """One node on a loopback port, a free one by default; ``async with`` starts and stops it."""

    def __init__(self, arguments: Sequence[str] = (), *, port: int = 0) -> None:
        super().__init__("")
        self._arguments = ["--port", str(port), *arguments]
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._start()
        return await super().__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        await self._stop()

    async def restart(self) -> None:
        """Stop the node and start it at the same address."""
        await self._stop()
        self._arguments[1] = self.url.rpartition(":")[2]
        await self._start()

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            find_anvil(), *self._arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                port = await self._port()
        except BaseException:
            await self._stop()
            raise
        self.url = f"http://127.0.0.1:{port}"

    async def _port(self) -> int:
        output = self._output()
        while line := await output.readline():
            if found := _LISTENING.search(line):
                # It logs every call; a full pipe would stop it.
                self._drain = asyncio.create_task(self._discard())
                return int(found[1])
        raise RuntimeError("anvil ended before it listened")

    async def _discard(self) -> None:
        output = self._output()
        while await output.read(1 << 16):
            pass

    def _output(self) -> asyncio.StreamReader:
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("anvil is not running: use async with")
        return self._process.stdout

    async def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._drain is not None:
            await self._drain


def _request(number: int, method: str, params: Sequence[Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}


def _result(method: str, answer: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    if "error" in answer:
        raise RpcRefusedError(f"{method}: {answer['error']}")
    return answer["result"]
