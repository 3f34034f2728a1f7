"""The node that stories are told on: what it keeps of a chain when blocks are replaced."""

from __future__ import annotations

import pytest

from cambist.testing.anvil import RpcRefusedError
from cambist_evm.testing import Anvil
from cambist_evm.testing.anvil import LONG_CHAIN, STATES_MAX

MINED = 800
"""So many that anvil by itself would have the state at ``DEPTH`` in a file."""
DEPTH = STATES_MAX - 10


async def test_a_deep_reorg_of_a_long_chain_leaves_contracts_and_what_they_hold() -> None:
    """Or says that it cannot."""
    async with Anvil(automine=False, arguments=LONG_CHAIN) as node:
        token = await node.deploy("TestToken", "USDX", 6)
        await token.send("mint", node.accounts[1], 7)
        await node.mine(MINED)
        await node.reorg(DEPTH)
        assert await token.read("balanceOf", node.accounts[1]) == 7
        with pytest.raises(RpcRefusedError):
            await node.reorg(2 * STATES_MAX)
        assert await token.read("balanceOf", node.accounts[1]) == 7
