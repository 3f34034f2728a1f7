"""The demo's local chain: anvil, which keeps its blocks in the demo's folder, so that each start goes on with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from cambist.embedded.processes import free_port

STATE = "local-chain.json"
CHAIN, CHAIN_ID, CONFIRMATIONS = "local", 31337, 2
BLOCK_S = 4
START_S_MAX, STOP_S_MAX = 20, 10
APPROVED_BEYOND = "0.1"
"""So much ETH or more at once waits for a person's approval."""


class NodeFailedError(Exception):
    """The local chain did not start; the message says why."""


def settings(url: str) -> str:
    """Return the part of the settings by which a gateway knows the chain."""
    return f"""
[plugins.evm.chains.{CHAIN}]
name = "Local chain"
rpc_urls = ["{url}"]
chain_id = {CHAIN_ID}
native_symbol = "ETH"
confirmations = {CONFIRMATIONS}
poll_interval_ms = 1000
trace = "off"

[signer]
approval_limits = {{ "{CHAIN}/ETH" = "{APPROVED_BEYOND}" }}
"""


@asynccontextmanager
async def local_node(anvil: Path | None, folder: Path) -> AsyncIterator[str | None]:
    """Run the node, and yield its address; None where there is no anvil. Raises NodeFailedError."""
    state = folder / STATE
    if anvil is None:
        if state.exists():
            raise NodeFailedError("this folder has a local chain, which needs anvil: name it with --anvil")
        yield None
        return
    port = free_port()
    argv: Sequence[str | Path] = (
        anvil, "--port", str(port), "--chain-id", str(CHAIN_ID), "--block-time", str(BLOCK_S), "--state", state,
    )  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True
    )
    try:
        await _until_it_listens(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        # Told to end it writes its state, which takes a moment.
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S_MAX)
        except TimeoutError:
            process.kill()


async def _until_it_listens(process: asyncio.subprocess.Process, port: int) -> None:
    deadline = asyncio.get_running_loop().time() + START_S_MAX
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise NodeFailedError(f"the local chain did not start in {START_S_MAX} s")
