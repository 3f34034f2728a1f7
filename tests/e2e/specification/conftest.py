"""One gateway between two chains with a market and a bridge, and merchants who do what the specification says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.e2e.conftest import client_session
from tests.support.between_chains import market, network, settings, tables
from tests.support.gateway import Merchant
from tests.support.networks.market import Market
from tests.support.opened import opened_by_folder as opened
from tests.support.receiver import Receiver

from .replay import Replay

__all__ = ["market", "network", "opened", "settings", "tables"]


@pytest.fixture(scope="module")
async def session(opened) -> aiohttp.ClientSession:
    """Give a session that lives as long as the merchants do."""
    return await opened.once("session", client_session)


@pytest.fixture(scope="module")
async def shop(opened, gateway, session, station, market, blocks) -> Replay:
    """Give a merchant with a live project, an authenticator, a session that has stepped up, and some money."""
    return await opened.once("shop", lambda: _shop(gateway.url, session, market))


@asynccontextmanager
async def _shop(url: str, session: aiohttp.ClientSession, market: Market) -> AsyncIterator[Replay]:
    async with _replay(url, session, "live") as replay:
        merchant = replay.merchant
        phone = await merchant.enrol()
        await merchant.post("/api/auth/step-up", {"totpCode": await phone.code()}, headers=merchant.bearer)
        payment = await merchant.pay(market.here.usdx, 200)
        await market.here.usdx.send(payment["depositAddress"], 200)
        await merchant.until(payment, "paid")
        yield replay


@pytest.fixture(scope="module")
async def sandbox(opened, gateway, session) -> Replay:
    """Give a merchant with a sandbox project, whose chains obey, and an authenticator."""
    return await opened.once("sandbox", lambda: _sandbox(gateway.url, session))


@asynccontextmanager
async def _sandbox(url: str, session: aiohttp.ClientSession) -> AsyncIterator[Replay]:
    async with _replay(url, session, "sandbox") as replay:
        await replay.merchant.enrol()
        yield replay


@pytest.fixture
async def stranger(gateway, session) -> AsyncIterator[Replay]:
    """Give a merchant of this test alone, with a sandbox project."""
    async with _replay(gateway.url, session, "sandbox") as replay:
        yield replay


@asynccontextmanager
async def _replay(url: str, session: aiohttp.ClientSession, mode: str) -> AsyncIterator[Replay]:
    async with Receiver() as receiver:
        merchant = await Merchant(url, session).open(mode=mode, webhook_url=receiver.url)
        receiver.secret = merchant.project["webhookSecret"]
        yield Replay(merchant, receiver)
        assert receiver.rejected == []
