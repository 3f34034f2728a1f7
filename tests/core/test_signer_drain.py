"""Somebody who has the API, the database and the worker asks the signer for everything, and lies in every field."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import count
from random import Random

import pytest

from cambist.signer.policy import Window
from cambist.signer.protocol import KeyPath, SignRequest
from cambist.testing.clock import ManualClock
from cambist.testing.memory.payload import read_payload
from tests.support.signing import DEPOSIT, GAS, WALLET, address, open_signer, request, stranger

HOUR_S, DAY_S = 3_600, 86_400
CAP, FRESH_CAP, APPROVED_BELOW = 1_000, 150, 400
RULES = {
    "hourly_caps": {"memory/USDX": "0.001", "memory/MEM": "0.000000000000001"},
    "fresh_address_caps": {"memory/USDX": "0.00015", "memory/MEM": "0.00000000000000015"},
    "fresh_address_delay_s": DAY_S,
    "approval_limits": {"memory/USDX": "0.0004", "memory/MEM": "0.0000000000000004"},
    "fee_caps": {"memory": "0.00000000000001"},
    "fee_hourly_caps": {"memory": "0.0000000000002"},
}
PATHS = (WALLET, DEPOSIT, GAS, KeyPath(account=2, change=1, index=0), KeyPath(account=3, change=0, index=4))
OURS = {address(path): path for path in PATHS}
NUMBERS = count()
PURPOSES = ("payout", "refund", "withdrawal", "auto_payout", "collection", "top_up", "repair", "", "nonsense")
ASKERS = ("session", "key", "key", "key", "key", "operator", "", "nonsense")


def lie(random: Random, sequence: int) -> SignRequest:
    """Ask for a transfer of anything from anywhere to anybody, and claim what helps."""
    to_address = random.choice([stranger(f"thief {random.randrange(8)}"), *OURS])
    return request(
        to_address,
        random.choice([0, 1, 50, 149, 150, 151, 399, 400, 999, 1_000, 1_001, random.randrange(2_000)]),
        path=random.choice(PATHS),
        symbol=random.choice(["USDX", "MEM"]),
        sequence=random.choice([sequence, sequence, random.randrange(sequence + 1)]),
        price=random.randrange(1, 13),
        purpose=random.choice(PURPOSES),
        asked_by=random.choice(ASKERS),
        # One that was signed for before would only be refused more often.
        reference=f"{random.choice(PURPOSES)}:{random.randrange(5)} {next(NUMBERS)}",
        own=tuple(random.sample(PATHS, random.randrange(len(PATHS)))),
    )


class Chain:
    """What the thief could make of the signatures: of each sequence, the payload that suits the thief best."""

    def __init__(self) -> None:
        self.taken: dict[tuple, list[tuple[float, str, int]]] = defaultdict(list)

    def note(self, asked: SignRequest, at: float) -> None:
        said = read_payload(asked.payload)
        # What nobody claims to be ours is as good as gone, and a slot counts it as such.
        origin, end = asked.path, OURS.get(said.recipient)
        end = end if end in {*asked.own, origin} else None
        stays = end is not None and (
            origin.account == 0 or end == origin or end == KeyPath(account=origin.account, change=1, index=0)
        )
        if not stays:
            self.taken[said.contract, origin, said.sequence].append((at, said.recipient, said.amount))

    def most(self, contract: str | None, since: float, until: float, counts=None) -> int:
        """Return the most that could be taken by what was signed in a span of time, beyond what was before."""
        return sum(
            max(amount for _, _, amount in signed) - max((amount for at, _, amount in signed if at < since), default=0)
            for (token, _, _), entries in self.taken.items()
            if token == contract
            and (signed := [one for one in entries if one[0] <= until and (counts is None or counts(one))])
            and max(at for at, _, _ in signed) >= since
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_no_lie_takes_more_than_the_hour_allows_or_to_a_fresh_address_what_must_wait(tmp_path, seed):
    clock, random, chain = ManualClock(), Random(seed), Chain()
    begin = clock.now()
    first_seen: dict[str, float] = {}
    signer = open_signer(tmp_path / "store", clock, **RULES)
    times, signed, fresh_purposes = [], 0, []
    for step in range(60):
        if random.random() < 0.1:  # a restart forgets nothing
            await signer.aclose()
            signer = open_signer(tmp_path / "store", clock, **RULES)
        now = (clock.now() - begin).total_seconds()
        batch = [lie(random, step) for _ in range(random.randrange(1, 40))]
        for asked, reply in zip(batch, await signer.sign(batch), strict=True):
            to_address = read_payload(asked.payload).recipient
            first_seen.setdefault(to_address, now)
            if reply.signature is not None:
                signed += 1
                chain.note(asked, now)
                if now < first_seen[to_address] + DAY_S and to_address not in OURS:
                    fresh_purposes.append(asked.purpose)
                    assert read_payload(asked.payload).amount < APPROVED_BELOW
        times.append(now)
        clock.advance(random.choice([1, 60, 600, 1_800, HOUR_S, DAY_S]))
    await signer.aclose()
    assert signed > 100
    assert not {"withdrawal", "auto_payout"} & set(fresh_purposes)
    contracts = {key[0] for key in chain.taken}
    assert len(contracts) == 2
    for contract in contracts:
        assert max(chain.most(contract, since, since + HOUR_S) for since in times) > CAP // 2
        for since in times:
            assert chain.most(contract, since, since + HOUR_S) <= CAP
            fresh = chain.most(contract, since, since + HOUR_S, lambda one: one[0] < first_seen[one[1]] + DAY_S)
            assert fresh <= FRESH_CAP


async def test_with_nothing_allowed_to_fresh_addresses_none_gets_anything_before_its_delay(tmp_path, clock):
    rules = {**RULES, "fresh_address_caps": {"memory/USDX": "0", "memory/MEM": "0"}, "approval_limits": {}}
    signer, random = open_signer(tmp_path / "store", clock, **rules), Random(7)
    for step in range(40):
        batch = [lie(random, step) for _ in range(20)]
        for asked, reply in zip(batch, await signer.sign(batch), strict=True):
            said = read_payload(asked.payload)
            assert reply.signature is None or said.recipient in OURS or said.amount == 0
        clock.advance(DAY_S / 50)
    await signer.aclose()


async def test_two_signers_on_one_store_share_its_caps(tmp_path, clock):
    signers = [open_signer(tmp_path / "store", clock, hourly_caps={"memory/USDX": "0.001"}) for _ in range(3)]
    batches = [[request(stranger("a"), 7, sequence=number * 1_000 + at) for at in range(60)] for number in range(9)]
    answers = await asyncio.gather(*(signers[at % 3].sign(batch) for at, batch in enumerate(batches)))
    passed = sum(reply.signature is not None for batch in answers for reply in batch)
    assert passed == 1_000 // 7
    for signer in signers:
        await signer.aclose()


async def test_a_clock_that_goes_back_does_not_open_the_window_and_delays_nothing_less(tmp_path, clock):
    rules = {"hourly_caps": {"memory/USDX": "0.001"}, "fresh_address_delay_s": DAY_S}
    signer = open_signer(tmp_path / "store", clock, **rules)
    start = clock.now()
    clock.advance(5 * HOUR_S)
    asked = [request(stranger("a"), 1_000, sequence=number) for number in range(3)]
    assert (await signer.sign(asked[:1]))[0].refusal is None
    await signer.aclose()
    clock.set(start)
    signer = open_signer(tmp_path / "store", clock, **rules)
    since = await signer.learn("live", "memory", 1, stranger("b"))
    assert (await signer.sign(asked[1:2]))[0].refusal == "HOURLY_CAP"
    clock.advance(HOUR_S * 2)
    assert (await signer.sign(asked[1:2]))[0].refusal == "HOURLY_CAP"
    clock.advance(HOUR_S * 3 + DAY_S - 1)
    assert since > start
    late = request(stranger("b"), 1, sequence=9, purpose="withdrawal")
    assert (await signer.sign([late, asked[1]]))[0].refusal == "TARGET_TOO_FRESH"
    clock.advance(HOUR_S * 2)
    assert (await signer.sign([late]))[0].refusal is None
    await signer.aclose()


def test_a_window_forgets_a_minute_when_all_of_it_is_an_hour_old():
    window = Window({})
    window.add(59, 10)
    window.add(60, 5)
    assert [window.total(at) for at in (60, 3_659, 3_660, 3_719, 3_720)] == [15, 15, 5, 5, 0]
    assert window.room_at(1, 16, 60) == 60
    assert window.room_at(7, 16, 60) == 3_660
    assert window.room_at(12, 16, 60) == 3_720
    assert window.room_at(17, 16, 60) is None


def test_amounts_beyond_sixty_four_bits_are_counted_exactly():
    window = Window({0: 10**40})
    assert window.room_at(1, 10**40 + 1, 1) == 1
    assert window.room_at(2, 10**40 + 1, 1) == 3_660
