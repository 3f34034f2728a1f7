"""The node for development, started from the command line."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE

import aiohttp

from cambist_tron_node import TronNode
from cambist_tron_node.__main__ import MILLION, arguments, create_token


def test_it_can_be_started_without_a_word() -> None:
    asked = arguments([])
    assert (asked.port, asked.block_time, asked.representatives, asked.token) == (9090, 3.0, 27, [])


async def test_it_says_where_it_is_and_makes_blocks_until_it_is_told_to_stop() -> None:
    options = "--port 0 --block-time 0.05 --accounts 2 --chain-id 1337 --no-contracts".split()
    program = await asyncio.create_subprocess_exec(sys.executable, "-m", "cambist_tron_node", *options, stdout=PIPE)
    assert program.stdout is not None
    async with asyncio.timeout(30):
        told = [(await program.stdout.readline()).decode().split() for _ in range(5)]
        url = told[0][1]
        assert told[1] == ["chain", "id", "1337"]
        async with TronNode(accounts_count=2) as same:
            assert [line[1] for line in told[3:]] == same.accounts
            assert [line[3] for line in told[3:]] == [same.keys[each].hex() for each in same.accounts]
        async with aiohttp.ClientSession() as session:
            number = 0
            while number < 5:
                async with session.post(f"{url}/wallet/getnowblock") as response:
                    number = (await response.json())["block_header"]["raw_data"]["number"]
        program.send_signal(signal.SIGTERM)
        assert await program.wait() == 0


async def test_every_account_has_a_million_of_a_token_and_pays_for_usdt_as_on_tron(contract_node: TronNode) -> None:
    token = await create_token(contract_node, "USDT")
    first, second = contract_node.accounts[:2]
    for account in contract_node.accounts:
        assert await token.balance_of(account) == MILLION * 10**6
    tx_id = await token.transfer(second, 1_000_000, sender=first)
    await contract_node.mine()
    info = contract_node.info(tx_id)
    assert info is not None
    assert info["receipt"]["energy_usage_total"] == 64_285
