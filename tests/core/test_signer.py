"""What the signer signs, and what it refuses whoever asks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cambist.signer.keystore import Keystore
from cambist.signer.protocol import KeyPath
from tests.support.signing import (
    COIN_TYPE,
    DEPOSIT,
    GAS,
    KEYSTORE,
    WALLET,
    address,
    answer,
    opening,
    request,
    signed_by,
    stranger,
)

DAY_S = 86_400


@pytest.fixture
async def make(tmp_path, clock):
    async with opening(tmp_path / "signer", clock) as make:
        yield make


async def test_a_signature_is_by_the_key_of_the_path(make):
    signer = make()
    for path in (WALLET, DEPOSIT, KeyPath(account=2**31 - 1, change=1, index=2**31 - 1)):
        for mode in ("live", "sandbox"):
            asked = request(stranger("a"), 5, path=path, mode=mode)
            assert signed_by(asked, await answer(signer, asked)) == address(path, mode)


async def test_simulated_chains_are_signed_for_with_the_sandboxs_keys_alone_and_without_rules(make):
    signer = make(hourly_caps={"memory/USDX": "0"}, allowed_addresses={"memory": ()})
    asked = request(stranger("a"), 5, mode="sandbox", chain="toy")
    assert signed_by(asked, await answer(signer, asked)) == address(WALLET, "sandbox")
    assert (await answer(signer, request(stranger("a"), 5, chain="toy"))).refusal == "UNKNOWN_CHAIN"


@pytest.mark.parametrize(
    "asked, code",
    [
        (request(stranger("a"), 1, mode="dead"), "UNKNOWN_CHAIN"),
        (request(stranger("a"), 1, chain="later"), "UNKNOWN_CHAIN"),
        (request(stranger("a"), 1, path=KeyPath(account=-1, change=0, index=0)), "BAD_REQUEST"),
        (request(stranger("a"), 1, path=KeyPath(account=1, change=3, index=0)), "BAD_REQUEST"),
        (request(stranger("a"), 1, own=(KeyPath(account=1, change=0, index=2**31),)), "BAD_REQUEST"),
        (request(stranger("a"), 1, own=(DEPOSIT,) * 501), "BAD_REQUEST"),
        (request(stranger("a"), 1, reference="x" * 129), "BAD_REQUEST"),
    ],
)
async def test_what_cannot_be_meant_is_refused(make, asked, code):
    reply = await answer(make(), asked)
    assert (reply.signature, reply.refusal, reply.retry_at) == (None, code, None)


async def test_a_payload_that_cannot_be_read_is_refused_and_its_neighbours_are_signed(make):
    good = request(stranger("a"), 1)
    foreign = request(stranger("a"), 1, chain="other")
    bad = [
        type(good)(**{**{name: getattr(good, name) for name in good.__struct_fields__}, "payload": raw})
        for raw in (b"", b"\xff" * 100, good.payload[:-1], good.payload + b" ", foreign.payload, b"[" * 60_000)
    ]
    replies = await make().sign([good, *bad, good])
    assert [reply.refusal for reply in replies] == [None, *["UNREADABLE_PAYLOAD"] * len(bad), None]
    assert replies[0].signature == replies[-1].signature


async def test_money_that_stays_with_its_owner_needs_no_rule(make):
    signer = make(hourly_caps={"memory/USDX": "0", "memory/MEM": "0"}, allowed_addresses={"memory": ()})
    collection = request(address(WALLET), 10, path=DEPOSIT, own=(WALLET,), purpose="collection")
    top_up = request(address(DEPOSIT), 10, path=GAS, own=(DEPOSIT,), purpose="top_up", symbol="MEM")
    repair = request(address(WALLET), 0, symbol="MEM", purpose="repair")
    assert [reply.refusal for reply in await signer.sign([collection, top_up, repair])] == [None] * 3


@pytest.mark.parametrize(
    "to_address, own",
    [
        (stranger("a"), (WALLET,)),  # the claim is a lie
        (stranger("a"), (WALLET, DEPOSIT, GAS)),
        (address(WALLET), ()),  # nobody claims it, so nobody looks
        (
            address(KeyPath(account=2, change=1, index=0)),
            (KeyPath(account=2, change=1, index=0),),
        ),  # another merchant's
        (
            address(KeyPath(account=1, change=1, index=99)),
            (KeyPath(account=1, change=1, index=99),),
        ),  # nobody looks there
        (address(GAS), (GAS,)),
        (address(WALLET, "sandbox"), (WALLET,)),  # another tree
    ],
)
async def test_everything_else_is_as_good_as_gone_whatever_is_claimed(make, to_address, own):
    signer = make(hourly_caps={"memory/USDX": "0.000009"})
    asked = request(to_address, 10, path=DEPOSIT, own=own, purpose="collection", reference="collection:1")
    assert (await answer(signer, asked)).refusal == "HOURLY_CAP"


async def test_the_gas_station_pays_nobody_but_us(make):
    signer = make()
    asked = request(stranger("a"), 1, path=GAS, symbol="MEM", purpose="top_up", own=(DEPOSIT,))
    assert (await answer(signer, asked)).refusal == "GAS_STATION_PAYS_OUT"
    elsewhere = request(stranger("a"), 1, path=KeyPath(account=0, change=1, index=5), symbol="MEM")
    assert (await answer(signer, elsewhere)).refusal == "GAS_STATION_PAYS_OUT"


async def test_the_allow_list_names_the_only_addresses(make):
    signer = make(allowed_addresses={"memory": (stranger("friend").upper(),)})
    assert (await answer(signer, request(stranger("friend"), 1))).refusal is None
    assert (await answer(signer, request(stranger("foe"), 1, sequence=1))).refusal == "TARGET_NOT_ALLOWED"
    assert (await answer(signer, request(stranger("foe"), 1, chain="other"))).refusal is None


async def test_the_hourly_cap_holds_for_each_asset_and_says_when_there_is_room(make, clock):
    signer = make(hourly_caps={"memory/USDX": "0.0001"})
    assert (await answer(signer, request(stranger("a"), 60))).refusal is None
    clock.advance(600)
    assert (await answer(signer, request(stranger("b"), 40, sequence=1))).refusal is None
    refused = await answer(signer, request(stranger("c"), 1, sequence=2))
    assert refused.refusal == "HOURLY_CAP"
    assert timedelta(seconds=3000) <= refused.retry_at - clock.now() <= timedelta(seconds=3060)
    assert (await answer(signer, request(stranger("c"), 1, sequence=2, symbol="MEM"))).refusal is None
    assert (await answer(signer, request(stranger("c"), 1, chain="other"))).refusal is None
    later = await answer(signer, request(stranger("c"), 61, sequence=2))
    assert later.retry_at > refused.retry_at
    clock.set(refused.retry_at)
    assert (await answer(signer, request(stranger("c"), 60, sequence=2))).refusal is None


async def test_more_than_the_cap_at_once_never_passes(make):
    reply = await answer(make(hourly_caps={"memory/USDX": "0.0001"}), request(stranger("a"), 101))
    assert (reply.refusal, reply.retry_at) == ("HOURLY_CAP", None)


async def test_a_replacement_counts_once_and_the_same_payload_not_again(make):
    signer = make(hourly_caps={"memory/USDX": "0.0001"})
    first = request(stranger("a"), 100)
    once = await answer(signer, first)
    assert (await answer(signer, first)).signature == once.signature
    for price in range(2, 6):
        assert (await answer(signer, request(stranger("a"), 100, price=price))).refusal is None
    assert (await answer(signer, request(stranger("b"), 40))).refusal is None  # at most one of them takes effect
    assert (await answer(signer, request(stranger("b"), 101))).refusal == "HOURLY_CAP"
    assert (await answer(signer, request(stranger("a"), 1, sequence=1))).refusal == "HOURLY_CAP"
    assert (await answer(signer, request(stranger("a"), 1, path=DEPOSIT))).refusal == "HOURLY_CAP"


async def test_a_refusal_counts_nothing(make):
    signer = make(hourly_caps={"memory/USDX": "0.0001"})
    for sequence in range(5):
        assert (await answer(signer, request(stranger("a"), 101, sequence=sequence))).refusal == "HOURLY_CAP"
    assert (await answer(signer, request(stranger("a"), 100, sequence=5))).refusal is None


async def test_fees_are_capped_for_each_transaction_and_for_the_hour_inside_the_house_too(make, clock):
    signer = make(fee_caps={"memory": "0.000000000000010000"}, fee_hourly_caps={"memory": "0.000000000000025000"})
    inside = {"path": DEPOSIT, "own": (WALLET,), "purpose": "collection"}
    assert (await answer(signer, request(address(WALLET), 1, price=11, **inside))).refusal == "FEE_ABOVE_CAP"
    assert (await answer(signer, request(address(WALLET), 1, price=10, **inside))).refusal is None
    assert (await answer(signer, request(stranger("a"), 1, price=10))).refusal is None
    refused = await answer(signer, request(stranger("a"), 1, price=6, sequence=1))
    assert refused.refusal == "HOURLY_FEES"
    assert (await answer(signer, request(stranger("a"), 1, price=5, sequence=1))).refusal is None
    clock.set(refused.retry_at)
    assert (await answer(signer, request(stranger("a"), 1, price=6, sequence=2))).refusal is None


async def test_a_fresh_address_waits_for_its_delay_where_one_person_could_ask(make, clock):
    signer = make(fresh_address_delay_s=DAY_S)
    asked = request(stranger("a"), 1, purpose="withdrawal")
    refused = await answer(signer, asked)
    assert (refused.refusal, refused.retry_at) == ("TARGET_TOO_FRESH", clock.now() + timedelta(days=1))
    clock.advance(DAY_S - 1)
    assert (await answer(signer, asked)).refusal == "TARGET_TOO_FRESH"
    clock.advance(1)
    assert (await answer(signer, asked)).refusal is None


async def test_a_delay_can_begin_when_an_address_is_entered(make, clock):
    signer = make(fresh_address_delay_s=DAY_S)
    since = await signer.learn("live", "memory", 1, stranger("a").upper())
    assert since == clock.now()
    clock.advance(DAY_S)
    assert await signer.learn("live", "memory", 1, stranger("a")) == since
    assert (await answer(signer, request(stranger("a"), 1, purpose="auto_payout"))).refusal is None
    elsewhere = request(stranger("a"), 1, purpose="auto_payout", chain="other")
    assert (await answer(signer, elsewhere)).refusal == "TARGET_TOO_FRESH"
    for chain, to_address in (("memory", "nobody"), ("nowhere", stranger("a"))):
        with pytest.raises(ValueError, match=r"no address|no chain"):
            await signer.learn("live", chain, 1, to_address)


async def test_fresh_addresses_share_what_may_go_to_them_at_once(make, clock):
    signer = make(fresh_address_delay_s=DAY_S, fresh_address_caps={"memory/USDX": "0.00001"})
    for number in range(10):
        assert (await answer(signer, request(stranger(f"s{number}"), 1, sequence=number))).refusal is None
    refused = await answer(signer, request(stranger("next"), 1, sequence=10))
    assert refused.refusal == "TARGET_TOO_FRESH"
    assert refused.retry_at - clock.now() <= timedelta(seconds=3660)
    large = await answer(signer, request(stranger("large"), 11, sequence=10))
    assert (large.refusal, large.retry_at) == ("TARGET_TOO_FRESH", clock.now() + timedelta(days=1))
    clock.advance(DAY_S)
    assert (await answer(signer, request(stranger("large"), 1_000, sequence=10))).refusal is None


async def test_the_operators_own_list_is_never_fresh(make):
    signer = make(fresh_address_delay_s=DAY_S, allowed_addresses={"memory": (stranger("friend"),)})
    assert (await answer(signer, request(stranger("friend"), 1, purpose="withdrawal"))).refusal is None


async def test_nothing_secret_shows(make):
    signer = make()
    await answer(signer, request(stranger("a"), 1))
    key = KEYSTORE.private_key("live", COIN_TYPE, WALLET.account, WALLET.change, WALLET.index)
    shown = f"{signer!r} {vars(signer)!r} {KEYSTORE!r} {vars(KEYSTORE)['_leaf']!r} {key!r} {signer._reader!r}"
    assert "abandon" not in repr(signer) + repr(KEYSTORE)
    assert key.to_hex() not in shown
    with pytest.raises(TypeError, match="not copied"):
        __import__("copy").copy(Keystore(KEYSTORE.mnemonic))
