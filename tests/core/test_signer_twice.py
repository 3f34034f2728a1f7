"""The signer remembers for which nonce it signed a transfer, and signs it for no other, whatever others forget."""

from __future__ import annotations

import pytest

from tests.support.signing import DEPOSIT, WALLET, address, open_signer, request, stranger


@pytest.fixture
async def signer(tmp_path, clock):
    signer = open_signer(tmp_path / "store", clock)
    yield signer
    await signer.aclose()


async def refusals(signer, *asked) -> list[str | None]:
    return [reply.refusal for reply in await signer.sign(asked)]


def transfer(sequence: int, **more):
    return request(stranger("a"), 5, sequence=sequence, reference="payout:po_1", **more)


async def test_a_transfer_is_signed_for_one_place_and_replaced_there_as_often_as_needed(signer):
    assert await refusals(signer, transfer(5), transfer(5, price=2), transfer(6), transfer(5, price=3)) == [
        None,
        None,
        "ALREADY_SIGNED",
        None,
    ]
    (reply,) = await signer.sign([transfer(6)])
    assert (reply.slot_number, reply.retry_at) == (5, None)


async def test_it_may_have_another_place_once_the_first_is_dead(signer):
    await signer.sign([transfer(5)])
    assert await refusals(signer, transfer(7, dead=(4, 6)), transfer(7, dead=(5,))) == ["ALREADY_SIGNED", None]
    # The new slot is the one that counts from now on, with the same rule.
    assert await refusals(signer, transfer(8, dead=(5,)), transfer(8, dead=(5, 7))) == ["ALREADY_SIGNED", None]


async def test_another_sender_is_another_place_whatever_is_said_to_be_dead(signer):
    await signer.sign([transfer(5)])
    assert await refusals(signer, transfer(5, path=DEPOSIT, dead=(5,))) == ["ALREADY_SIGNED"]


async def test_what_stays_with_its_owner_has_no_such_rule(signer):
    collections = [
        request(address(WALLET), 5, path=DEPOSIT, own=(WALLET,), sequence=sequence, reference="collection:1")
        for sequence in (1, 2)
    ]
    assert await refusals(signer, *collections) == [None, None]


async def test_behind_a_refusal_nothing_is_bound_to_a_place_that_may_never_come(signer):
    await signer.sign([transfer(5)])
    behind = [
        request(stranger("b"), 5, sequence=sequence, reference=f"payout:{sequence}", follows=True)
        for sequence in (7, 8)
    ]
    assert await refusals(signer, transfer(6), *behind) == ["ALREADY_SIGNED", "NOT_REACHED", "NOT_REACHED"]
    moved = [
        request(stranger("b"), 5, sequence=sequence - 1, reference=f"payout:{sequence}", follows=True)
        for sequence in (7, 8)
    ]
    assert await refusals(signer, *moved) == [None, None]
