"""Targets whose delay should run early are told to the signer as soon as they are known."""

from __future__ import annotations

import pytest

from cambist.domain.intents import IntentKind
from cambist.services.payouts.signer_learning import Learner
from cambist.signer.protocol import SignerUnavailableError
from cambist.signer.rules import Rules
from tests.support.plays import play
from tests.support.treasury import Treasury


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    rules = Rules(fresh_address_delay_s=3600)
    async with Treasury(db, clock, ids, tmp_path, rules=rules) as treasury:
        await play(treasury, Treasury.open_paid, ("USDX", 10_000_000))
        yield treasury
        await treasury.check_books()


async def approve(treasury, address: str, *, merchant: int | None = None) -> None:
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO approved_addresses (approval_id, merchant_pk, mode, chain, address, label, approved_at)"
            " VALUES ('apr_1', $1, 'live', $2, $3, 'cold wallet', $4)",
            (merchant or treasury.merchant, treasury.info.id, address, treasury.clock.now()),
        )


async def learn(treasury, learner) -> int:
    async with treasury.db.autocommit() as conn:
        return await learner.learn(conn)


async def test_a_withdrawal_to_an_address_approved_long_ago_goes_at_once(treasury):
    to_address, learner = await treasury.stranger(1), Learner(treasury.signer)
    await approve(treasury, to_address)
    assert await learn(treasury, learner) == 1
    assert await learn(treasury, learner) == 0
    treasury.clock.advance(3601)
    await treasury.pay_out("USDX", 4_000_000, to_address, kind=IntentKind.WITHDRAWAL)
    await treasury.work(treasury.engine(), rounds=12)
    assert await treasury.on_chain(to_address, "USDX") == 4_000_000


async def test_a_withdrawal_to_a_fresh_address_waits_for_its_delay_and_then_goes(treasury):
    to_address, engine = await treasury.stranger(1), treasury.engine()
    await treasury.pay_out("USDX", 4_000_000, to_address, kind=IntentKind.WITHDRAWAL)
    await learn(treasury, Learner(treasury.signer))
    await treasury.work(engine, rounds=12, until="enough")
    assert await treasury.on_chain(to_address, "USDX") == 0
    assert ("withdrawal", "waiting", "signer: TARGET_TOO_FRESH") in await treasury.open_intents()
    treasury.clock.advance(3601)
    await treasury.work(engine, rounds=12)
    assert await treasury.on_chain(to_address, "USDX") == 4_000_000


async def test_what_another_merchant_approved_long_ago_is_fresh_all_the_same(treasury):
    to_address, learner = await treasury.stranger(1), Learner(treasury.signer)
    other, _ = await treasury.new_merchant("mer_2")
    await approve(treasury, to_address, merchant=other)
    assert await learn(treasury, learner) == 1
    treasury.clock.advance(3601)
    await treasury.pay_out("USDX", 4_000_000, to_address, kind=IntentKind.WITHDRAWAL)
    assert await learn(treasury, learner) == 1
    await treasury.work(treasury.engine(), rounds=12, until="enough")
    assert await treasury.on_chain(to_address, "USDX") == 0
    treasury.clock.advance(3601)
    await treasury.work(treasury.engine(), rounds=12)
    assert await treasury.on_chain(to_address, "USDX") == 4_000_000


async def test_what_the_signer_was_not_there_to_hear_is_told_again(treasury, monkeypatch):
    await approve(treasury, await treasury.stranger(1))
    learner = Learner(treasury.signer)
    with monkeypatch.context() as away:
        away.setattr(treasury.signer, "_learn", _unavailable)
        with pytest.raises(SignerUnavailableError):
            await learn(treasury, learner)
    assert await learn(treasury, learner) == 1


def _unavailable(*_) -> int:
    raise SignerUnavailableError


async def test_payouts_that_have_ended_are_not_read_to_find_what_waits(treasury):
    async with treasury.db.transaction() as conn:
        for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off"):
            await conn.exec_driver_sql(f"SET LOCAL {setting}")
        scans = "SELECT pg_stat_get_xact_numscans('ix_payouts_open'::regclass)"
        before = (await conn.exec_driver_sql(scans)).scalar_one()  # of this connection, since it last told its sums
        await Learner(treasury.signer).learn(conn)
        assert (await conn.exec_driver_sql(scans)).scalar_one() == before + 1
