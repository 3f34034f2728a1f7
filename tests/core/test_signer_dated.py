"""Where transactions have no sequence but expire, the signer binds a transfer to the time until which it is valid."""

from __future__ import annotations

import pytest

from cambist.signer.protocol import KeyPath, SignRequest
from cambist.testing.memory.payload import DatedPayload, dated_id, write_payload
from tests.support.signing import DEPOSIT, GAS, WALLET, address, open_signer, registry_of, signed_by, stranger


@pytest.fixture
async def signer(tmp_path, clock):
    signer = open_signer(tmp_path / "store", clock)
    yield signer
    await signer.aclose()


def asked(
    valid_until: int,
    *,
    serial: int = 0,
    to_address: str | None = None,
    action: str = "transfer",
    path: KeyPath = WALLET,
    own: tuple[KeyPath, ...] = (),
    dead: tuple[int, ...] = (),
    reference: str = "payout:po_1",
) -> SignRequest:
    token = registry_of("memory").token("USDX" if action == "transfer" else "MEM")
    said = DatedPayload(
        chain="memory", valid_until=valid_until, serial=serial, action=action, contract=token.contract,
        recipient=to_address or stranger("a"), amount=5, limit=1_000, price=1, extra=0,
    )  # fmt: skip
    return SignRequest(
        mode="live", chain="memory", payload=write_payload(said), path=path, purpose="payout", reference=reference,
        own=own, dead=dead,
    )  # fmt: skip


async def refusals(signer, *requests) -> list[str | None]:
    return [reply.refusal for reply in await signer.sign(requests)]


async def test_a_transfer_is_signed_once_and_again_only_when_the_first_is_said_to_have_expired(signer):
    first = asked(100)
    assert await refusals(signer, first, first, asked(100, serial=1), asked(160)) == [
        None,
        None,
        "ALREADY_SIGNED",
        "ALREADY_SIGNED",
    ]
    (reply,) = await signer.sign([asked(160)])
    assert (reply.slot_number, reply.tx_id) == (100, dated_id(first.payload))
    assert await refusals(signer, asked(160, dead=(99, 101)), asked(160, dead=(100,))) == ["ALREADY_SIGNED", None]
    assert await refusals(signer, asked(200, dead=(100,)), asked(200, dead=(100, 160))) == ["ALREADY_SIGNED", None]


async def test_another_transfer_and_another_sender_are_not_mixed_up(signer):
    assert await refusals(signer, asked(100), asked(100, serial=1, reference="payout:po_2")) == [None, None]
    assert await refusals(signer, asked(160, path=DEPOSIT, dead=(100,))) == ["ALREADY_SIGNED"]


async def test_the_gas_station_lends_to_addresses_of_ours_and_to_nobody_else(signer):
    ours = asked(100, action="lend", path=GAS, to_address=address(DEPOSIT), own=(DEPOSIT,))
    (reply,) = await signer.sign([ours])
    assert signed_by(ours, reply) == address(GAS)
    unproven = asked(100, serial=1, action="lend", path=GAS, to_address=address(DEPOSIT))
    foreign = asked(100, serial=2, action="lend", path=GAS, own=(DEPOSIT,))
    assert await refusals(signer, unproven, foreign) == ["STAKE_NOT_ALLOWED", "STAKE_NOT_ALLOWED"]


@pytest.mark.parametrize("action", ["lend", "stake", "unstake", "withdraw"])
async def test_no_merchants_address_touches_a_stake(signer, action):
    request = asked(100, action=action, path=WALLET, to_address=address(WALLET), own=(WALLET,))
    assert await refusals(signer, request) == ["STAKE_NOT_ALLOWED"]
