"""A reference that was voided is never signed again, whoever asks and whatever was forgotten; and it says what was."""

from __future__ import annotations

import sqlite3

import pytest

from cambist.signer import store as store_module
from cambist.signer.protocol import SignerUnavailableError, Voided
from cambist.signer.remote import RemoteSigner
from cambist.signer.server import SignerServer
from cambist.signer.store import FILE, Store
from cambist.signer.store_schema import VERSIONS
from tests.support.signing import WALLET, address, answer, open_signer, opening, request, stranger

REFERENCE = "payout:po_1"


@pytest.fixture
async def open_one(tmp_path, clock):
    async with opening(tmp_path / "store", clock) as make:
        yield make


def transfer(sequence: int, **more):
    return request(stranger("a"), 5, sequence=sequence, reference=REFERENCE, **more)


async def voided(signer, reference: str = REFERENCE) -> Voided:
    (found,) = await signer.void("live", "memory", [reference])
    return found


async def test_what_was_never_signed_is_voided_for_good_also_for_who_opens_the_store_next(open_one):
    first = open_one()
    assert await voided(first) == Voided()
    for signer in (first, open_one()):
        reply = await answer(signer, transfer(5))
        assert (reply.signature, reply.refusal, reply.retry_at) == (None, "VOIDED", None)
        # Neither a person's word nor a dead slot opens it again.
        assert (await answer(signer, transfer(6, dead=(5,)))).refusal == "VOIDED"
        assert (await voided(signer)).is_unsigned
    assert (await answer(first, request(stranger("a"), 5, sequence=7, reference="payout:po_2"))).refusal is None


async def test_what_was_signed_is_told_with_its_place_and_not_signed_for_that_either(open_one):
    signer = open_one()
    await signer.sign([transfer(5)])
    assert await voided(signer) == Voided(sender=address(WALLET), slot_number=5)
    # Not a replacement, and not the same bytes once more: the gateway has them, or they are lost.
    assert [reply.refusal for reply in await signer.sign([transfer(5, price=2), transfer(5)])] == ["VOIDED", "VOIDED"]


async def test_of_several_places_the_last_is_told_for_those_before_were_dead(open_one):
    signer = open_one()
    await signer.sign([transfer(5)])
    await signer.sign([transfer(8, dead=(5,))])
    assert (await voided(signer)).slot_number == 8


async def test_one_chain_s_reference_is_another_one_elsewhere(open_one):
    signer = open_one()
    await voided(signer)
    assert (await answer(signer, transfer(5, chain="other"))).refusal is None
    for mode, chain in (("live", "nowhere"), ("sandbox", "memory")):
        with pytest.raises(ValueError, match="there is no chain"):
            await signer.void(mode, chain, [REFERENCE])


async def test_nobody_is_asked_to_agree_any_more_to_what_is_voided(open_one, tmp_path):
    signer = open_one(approval_limits={"memory/USDX": "0.000001"})
    assert (await answer(signer, transfer(5))).refusal == "APPROVAL_NEEDED"
    operator = Store(tmp_path / "store")
    with operator.book(0) as book:
        (asked,) = book.asked(REFERENCE)
        book.approve(asked.pk)
    await voided(signer)
    with operator.book(0) as book:
        assert book.asked(REFERENCE) == []
    operator.close()
    assert (await answer(signer, transfer(5))).refusal == "VOIDED"


async def test_a_void_that_cannot_be_written_down_is_not_answered(open_one, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 0)
    signer = open_one()
    other = sqlite3.connect(tmp_path / "store" / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SignerUnavailableError, match="locked"):
        await voided(signer)
    other.execute("ROLLBACK")
    other.close()
    assert (await answer(signer, transfer(5))).refusal is None


async def test_a_signer_elsewhere_is_asked_the_same(open_one, tmp_path, clock):
    local = open_one()
    await local.sign([transfer(5)])
    many = [REFERENCE, *(f"payout:{number}" for number in range(700))]
    async with SignerServer(local).listen(tmp_path / "s.sock"):
        remote = RemoteSigner(tmp_path / "s.sock", timeout_s=20)
        found = await remote.void("live", "memory", many)
        assert (len(found), found[0].slot_number, {one.is_unsigned for one in found[1:]}) == (701, 5, {True})
        with pytest.raises(ValueError, match="there is no chain"):
            await remote.void("live", "nowhere", [REFERENCE])
        await remote.aclose()
    assert (await answer(local, request(stranger("b"), 5, reference="payout:699"))).refusal == "VOIDED"


async def test_a_store_of_before_learns_to_void_and_keeps_what_it_knows(tmp_path, clock):
    (tmp_path / "store").mkdir(mode=0o700)
    before = sqlite3.connect(tmp_path / "store" / FILE)
    before.executescript("".join(VERSIONS[:2]) + "PRAGMA user_version = 2;")
    slot = f"memory/{address(WALLET)}/5"
    before.execute("INSERT INTO signed (chain, reference, slot) VALUES ('memory', ?, ?)", (REFERENCE, slot))
    before.commit()
    before.close()
    (tmp_path / "store" / FILE).chmod(0o600)
    signer = open_signer(tmp_path / "store", clock)
    assert (await voided(signer)).slot_number == 5
    await signer.aclose()
