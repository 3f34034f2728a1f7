"""The books beside the chain: zero while all is well, whatever is on its way, and every difference told."""

from __future__ import annotations

import pytest

from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose, asset_key, post
from cambist.services.recovery.reconcile import Impossible, as_text, compare_chain, reconcile_chain
from cambist.testing.memory import Output
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

NATIVE = asset_key("memory", None)


def lines(report):
    return {
        (line.group, line.token): (line.on_chain, line.booked, line.in_transit, line.difference)
        for line in report.groups
    }


async def paid(shop, chain, watcher, units, *, blocks=4, symbol="USDX"):
    address = await shop.payment(chain, symbol, units)
    chain.transfer(chain.info.token(symbol), address, units)
    chain.mine(blocks)
    await shop.poll(watcher)
    return address


class Own:
    """Rows of what the engine would have stored, for transactions that tests make by hand."""

    def __init__(self, db, shop, chain):
        self.db, self.shop, self.chain = db, shop, chain

    async def wallet(self):
        address = self.shop.family.derive_address(XPUB, 1, 0)
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change,"
                " address_index) VALUES ('live', 'memory', $1, 'wallet', $2, 1, 1, 0)",
                (address, self.shop.merchant),
            )
        return address

    async def send(
        self, kind, source, to_address, units, token, *, state="sent", role="main", recipient=True, height=None
    ):
        """Have a transfer between addresses made and stored; mine it, or not."""
        output = Output(contract=token.contract, recipient=to_address, amount=units)
        tx_id = self.chain.submit([output], sender=source)
        async with self.db.transaction() as conn:
            row = await conn.exec_driver_sql(
                "WITH intent AS (INSERT INTO outbound_intents (reference, kind, mode, chain, scope, merchant_pk,"
                " source_address_pk, recipient_address_pk, to_address, token, contract, decimals, units, state, due_at,"
                " created_at, updated_at) SELECT $1, $2, 'live', 'memory', 0, $3, s.id, CASE WHEN $10 THEN r.id END,"
                " $5, $6, $7, $8, $9, 'sending', now(), now(), now() FROM addresses s LEFT JOIN addresses r"
                " ON r.address = $5 WHERE s.address = $4 RETURNING id, source_address_pk), slot AS (INSERT INTO"
                " outbound_slots (intent_pk, address_pk, chain, scope, sequence, created_at) SELECT id,"
                " source_address_pk, 'memory', 0, id, now() FROM intent RETURNING id) INSERT INTO outbound_txs"
                " (slot_pk, chain, scope, role, tx_id, raw, fee_limit, fee_price, fee_extra, created_at, state, height,"
                " succeeded) SELECT id, 'memory', 0, $12, $1, '', 1, 1, 0, now(), $11, $13, true FROM slot"
                " RETURNING (SELECT id FROM intent)",
                (
                    tx_id, kind, self.shop.merchant, source, to_address, token.symbol, token.contract, token.decimals,
                    units, recipient, state, role, height,
                ),
            )  # fmt: skip
            return tx_id, row.scalar_one()

    async def move(self, kind, debit, credit, units, asset):
        async with self.db.transaction() as conn:
            movement = Movement(
                Account(self.shop.merchant, asset, debit), Account(self.shop.merchant, asset, credit), units
            )
            posting = Posting(mode="live", kind=kind, reference=f"{kind}:{units}", movements=[movement])
            await post(conn, "live", [posting])


XPUB = "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj"


@pytest.fixture
def own(db, shop, chain):
    return Own(db, shop, chain)


async def test_a_chain_that_was_never_read_cannot_be_compared(db, chain):
    with pytest.raises(Impossible, match="has not read this chain yet"):
        await reconcile_chain(db, chain)


async def test_confirmed_deposits_are_where_the_books_say(db, shop, chain, watcher):
    await paid(shop, chain, watcher, 1_000_000)
    await paid(shop, chain, watcher, 10**18, symbol="MEM")
    report = await reconcile_chain(db, chain)
    assert report.differences == []
    assert lines(report) == {("deposits", "USDX"): ("1", "1", "0", "0"), ("deposits", "MEM"): ("1", "1", "0", "0")}
    assert (report.height, report.addresses_asked) == (chain.height, 2)
    assert next(as_text(report)).startswith("memory: no difference at height 8 (2 balances of 2 addresses)")


async def test_what_waits_for_confirmations_is_in_transit(db, shop, chain, watcher):
    await paid(shop, chain, watcher, 1_500_000, blocks=1)
    report = await reconcile_chain(db, chain)
    assert lines(report) == {("deposits", "USDX"): ("1.5", "0", "+1.5", "0")}
    assert "✓ mer_1 deposits USDX: 1.5 on the chain, 0 in the books and +1.5 in transit" in "\n".join(as_text(report))


async def test_what_was_mined_behind_the_height_does_not_count_yet(db, shop, chain, watcher):
    address = await paid(shop, chain, watcher, 1_000_000)
    chain.transfer(chain.info.token("USDX"), address, 5)
    chain.mine(3)
    assert (await reconcile_chain(db, chain)).differences == []


async def test_a_collection_on_its_way_is_in_transit_on_both_sides(db, shop, chain, watcher, own, usdx, asset):
    address, wallet = await paid(shop, chain, watcher, 1_000_000), await own.wallet()
    await own.send("collection", address, wallet, 1_000_000, usdx)
    assert (await reconcile_chain(db, chain)).differences == []  # it waits to be mined
    chain.mine(1)
    assert (await reconcile_chain(db, chain)).differences == []  # it is mined, but behind what was read
    await shop.poll(watcher)
    report = await reconcile_chain(db, chain)
    assert lines(report) == {("deposits", "USDX"): ("0", "1", "-1", "0"), ("wallet", "USDX"): ("1", "0", "+1", "0")}


async def test_a_booked_collection_is_where_the_books_say(db, shop, chain, watcher, own, usdx, asset):
    address, wallet = await paid(shop, chain, watcher, 1_000_000), await own.wallet()
    await own.send("collection", address, wallet, 1_000_000, usdx, state="final", height=chain.height + 1)
    chain.mine(1)
    await shop.poll(watcher)
    await own.move("collection", Purpose.CUSTODY_WALLET, Purpose.CUSTODY_DEPOSITS, 1_000_000, asset)
    report = await reconcile_chain(db, chain)
    assert lines(report) == {("wallet", "USDX"): ("1", "1", "0", "0")}


async def test_a_payout_on_its_way_leaves_the_wallet_alone(db, shop, chain, watcher, own, usdx, asset):
    wallet = await own.wallet()
    chain.transfer(usdx, wallet, 3_000_000)
    chain.mine(4)
    await shop.poll(watcher)
    await own.send("payout", wallet, chain.faucet, 1_000_000, usdx)
    chain.mine(1)
    await shop.poll(watcher)
    assert lines(await reconcile_chain(db, chain)) == {("wallet", "USDX"): ("2", "3", "-1", "0")}


async def test_a_transaction_that_only_takes_a_place_moves_nothing(db, shop, chain, watcher, own, usdx):
    wallet = await own.wallet()
    chain.transfer(usdx, wallet, 3_000_000)
    chain.mine(4)
    await shop.poll(watcher)
    tx_id, _ = await own.send("payout", wallet, chain.faucet, 1_000_000, usdx, role="cancel")
    chain.forget(tx_id)
    chain.mine(1)
    await shop.poll(watcher)
    assert (await reconcile_chain(db, chain)).differences == []


async def test_a_booked_transaction_that_a_reorg_is_about_to_undo_is_in_transit(
    db, shop, chain, watcher, own, usdx, asset
):
    address, wallet = await paid(shop, chain, watcher, 1_000_000), await own.wallet()
    tx_id, _ = await own.send("collection", address, wallet, 1_000_000, usdx, state="final", height=chain.height + 1)
    chain.forget(tx_id)
    await own.move("collection", Purpose.CUSTODY_WALLET, Purpose.CUSTODY_DEPOSITS, 1_000_000, asset)
    report = await reconcile_chain(db, chain)
    assert lines(report) == {("deposits", "USDX"): ("1", "0", "+1", "0"), ("wallet", "USDX"): ("0", "1", "-1", "0")}


async def test_money_that_left_behind_our_back_is_told_with_its_address(db, shop, chain, watcher, usdx):
    first, second = [await paid(shop, chain, watcher, 1_000_000) for _ in range(2)]
    chain.submit([Output(contract=usdx.contract, recipient=chain.faucet, amount=250_000)], sender=second)
    chain.mine(1)
    await shop.poll(watcher)
    report = await reconcile_chain(db, chain)
    (line,) = report.differences
    assert (line.merchant_id, line.group, line.on_chain, line.booked, line.difference) == (
        "mer_1", "deposits", "1.75", "2", "-0.25",
    )  # fmt: skip
    (told,) = line.addresses
    assert (told.address, told.on_chain, told.expected) == (second, "0.75", "1")
    text = "\n".join(as_text(report))
    assert "memory: 1 difference at height" in text
    assert f"{second}: 0.75 on the chain, 1 from its deposits" in text
    assert first not in text


async def test_money_that_the_books_invented_is_told(db, shop, chain, watcher, own, asset):
    await paid(shop, chain, watcher, 1_000_000)
    await own.move("mistake", Purpose.CUSTODY_WALLET, Purpose.HELD, 7, asset)
    (line,) = (await reconcile_chain(db, chain)).differences
    assert (line.group, line.on_chain, line.difference) == ("wallet", "0", "-0.000007")


async def test_native_money_that_appeared_is_told(db, shop, chain, watcher, own):
    wallet = await own.wallet()
    address = await paid(shop, chain, watcher, 1_000_000)
    # As a contract's own transfer does on a node without traces: the balance grows, and no scan shows it.
    chain.accounts._held.add((address, None), chain.height, 5)
    chain.accounts._held.add((wallet, None), chain.height, 7)
    found = {line.group: (line.token, line.on_chain) for line in (await reconcile_chain(db, chain)).differences}
    assert found == {"deposits": ("MEM", "0.000000000000000005"), "wallet": ("MEM", "0.000000000000000007")}


async def test_a_node_that_is_down_is_no_difference(db, shop, chain, watcher):
    await paid(shop, chain, watcher, 1_000_000)
    chain.faults.unavailable = True
    with pytest.raises(Impossible, match="memory"):
        await reconcile_chain(db, chain)


@pytest.mark.parametrize("error", [KeyError("result"), ConnectionResetError("by the node")], ids=repr)
async def test_what_a_plugin_fails_with_only_keeps_its_own_chain_from_being_compared(db, shop, chain, watcher, error):
    await paid(shop, chain, watcher, 1_000_000)
    chain.faults.crash = error
    with pytest.raises(Impossible, match=rf"The plugin of memory failed with {type(error).__name__}\."):
        await compare_chain(db, chain)
    chain.faults.crash = None
    assert (await compare_chain(db, chain)).differences == []


async def test_blocks_that_were_replaced_in_between_are_not_compared(db, shop, chain, watcher):
    await paid(shop, chain, watcher, 1_000_000)
    chain.reorg(3, new_blocks=5)
    with pytest.raises(Impossible, match="changed with every poll"):
        await reconcile_chain(db, chain)
    await shop.poll(watcher)
    assert (await reconcile_chain(db, chain)).differences == []


async def test_at_every_block_of_a_busy_gateway_there_is_no_difference(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        for number in range(3):
            await treasury.receive("USDX", 1_000_000 + number)
        await treasury.receive("MEM", 10**18)
        other, _ = await treasury.new_merchant("mer_2")
        theirs = await treasury.deposit_address(other)
        to_addresses = [(await treasury.stranger(number), 300_000) for number in range(4)]
        await treasury.pay_out_many("USDX", [*to_addresses, (theirs, 500_000)])
        await treasury.pay_out("MEM", 10**17, to_addresses[0][0])
        engine, seen = treasury.engine(), set()
        for _ in range(30):
            while (await engine.tick()).more:
                pass
            report = await reconcile_chain(db, treasury.chain)
            assert report.differences == [], report.differences
            seen |= {line.group for line in report.groups if line.in_transit != "0"}
            if await treasury.is_idle():
                break
            await treasury.mine()
        assert seen == {"deposits", "wallet", "gas"}
        await treasury.mine(treasury.info.confirmations + 1)
        report = await reconcile_chain(db, treasury.chain)
        assert report.differences == []
        assert {line.in_transit for line in report.groups} == {"0"}
        await treasury.check_books()
