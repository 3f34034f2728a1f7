"""Movements are stored once, however often and with what else their block is read."""

from datetime import UTC, datetime

import pytest

from cambist.domain.identifiers import sort_key
from cambist.plugin import Block, ChainInfo, ScanResult, Token, Transfer, Units
from cambist.services.chain_scope import ChainScope
from cambist.services.trackers import movements
from tests.support.trackers import Watchers

FAMILY, WATCHED = "memory", "mem1watched"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
TOKEN = Token(symbol="USDX", contract="usdx", decimals=6, label="Example dollar", least_units=Units(1))
SCOPE = ChainScope(
    info=ChainInfo(id="bench", name="Bench", family=FAMILY, confirmations=3, tokens=(TOKEN,)), scope=0, mode="live"
)


def block_of(*tx_ids):
    transfers = [
        Transfer(
            tx_id=tx_id,
            position="log:0",
            height=1,
            block_hash="one",
            sender=None,
            recipient=WATCHED,
            contract="usdx",
            amount=Units(5),
        )
        for tx_id in tx_ids
    ]
    return ScanResult(
        blocks=(Block(height=1, hash="one", parent_hash="none", time=1_800_000_000),), transfers=transfers
    )


@pytest.fixture
async def watchers(shop):
    watchers = Watchers(shop.db, shop.project, family=FAMILY)
    await watchers.make([WATCHED], chain="bench")
    return watchers


@pytest.mark.parametrize("many", [1, movements.MANY])
async def test_a_block_that_is_read_again_with_more_in_it_adds_that_alone(db, watchers, monkeypatch, many):
    monkeypatch.setattr(movements, "MANY", many)
    for tx_ids, new in ((["a", "b"], 2), (["a", "b"], 0), (["b", "c", "c", "a", "d"], 2)):
        async with db.transaction() as conn:
            assert await movements.save(conn, SCOPE, block_of(*tx_ids), {WATCHED}, NOW) == new
    in_order = [*sorted("ab", key=sort_key), *sorted("cd", key=sort_key)]
    assert await watchers.stages() == [(tx_id, 1, "detected") for tx_id in in_order]
