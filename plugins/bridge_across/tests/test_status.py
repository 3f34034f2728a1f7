"""What Across's server says of a deposit: a hint, under newer and older names."""

from __future__ import annotations

import json

import pytest

from cambist.plugin import BridgeStatus, ProviderUnavailableError

from .samples import ETHEREUM, TRON, recorded
from .test_events import DEPOSIT

TX = "0x" + "AB" * 32
KEY = ("1", DEPOSIT.deposit_id)


async def status(bridge):
    return await bridge.status(ETHEREUM, DEPOSIT)


@pytest.mark.parametrize(
    "told, meant",
    [
        ({"status": "pending"}, BridgeStatus(state="pending")),
        ({"status": "filled", "fillTxnRef": TX}, BridgeStatus(state="filled", tx_id=TX.lower())),
        ({"status": "filled", "fillTx": TX}, BridgeStatus(state="filled", tx_id=TX.lower())),
        ({"status": "filled", "fillTxnRef": None, "fillTx": TX}, BridgeStatus(state="filled", tx_id=TX.lower())),
        ({"status": "slowFilled", "fillTx": "0x12"}, BridgeStatus(state="filled")),
        ({"status": "slowFillRequested"}, BridgeStatus(state="pending")),
        ({"status": "something new"}, BridgeStatus(state="pending")),
        ({"status": "expired"}, BridgeStatus(state="expired")),
        ({"status": "refunded", "depositRefundTxnRef": TX}, BridgeStatus(state="refunded", tx_id=TX.lower())),
        ({"status": "refunded", "depositRefundTxHash": TX}, BridgeStatus(state="refunded", tx_id=TX.lower())),
    ],
)
async def test_what_the_server_says_is_understood(bridge, server, told, meant):
    server.deposits[KEY] = told
    assert await status(bridge) == meant
    assert dict(server.requests[0].query) == {"originChainId": "1", "depositId": DEPOSIT.deposit_id}


async def test_a_deposit_that_it_does_not_know_yet_is_pending(bridge):
    assert await status(bridge) == BridgeStatus(state="pending")


@pytest.mark.parametrize("told", [{"depositId": "7"}, {"originChainId": 10}, {"status": None}, {"depositId": "x"}])
async def test_what_it_says_of_another_deposit_is_no_answer(bridge, server, told):
    server.deposits[KEY] = {"status": "filled", "fillTxnRef": TX} | told
    with pytest.raises(ProviderUnavailableError):
        await status(bridge)


async def test_a_recorded_refusal_is_no_state(bridge, server):
    server.status, server.body = 400, json.dumps(recorded("openapi_deposit_status_400.json")["response"]).encode()
    with pytest.raises(ProviderUnavailableError, match="HTTP 400"):
        await status(bridge)


async def test_a_chain_without_a_number_has_no_deposits(bridge):
    with pytest.raises(ProviderUnavailableError):
        await bridge.status(TRON, DEPOSIT)
