"""What the signer makes of approvals and of calls that swap and bridge: it reads them, and believes no price."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import msgspec
import pytest
from msgspec import structs

from cambist.domain.exchanges import AWAY_MAX_S
from cambist.plugin import Allowance, Call, CallReader, ChainInfo, ExchangeEffects, Units, UnreadablePayloadError
from cambist.services.exchanges.calls import Readers
from cambist.settings import Settings, SettingsError, SignerSettings
from cambist.signer.exchanges import ExchangeReader
from cambist.signer.local import LocalSigner
from cambist.signer.protocol import KeyPath, SignRequest
from cambist.signer.reading import Reader
from cambist.signer.rules import load_rules
from cambist.signer.store import Store
from cambist.testing.clock import START
from tests.support.exchanges import ROUTER, CallingFamily, FairReader, exchange_call, exchange_payload
from tests.support.signing import DEPOSIT, GAS, KEYSTORE, WALLET, address, answer, registry, stranger

HOUR_S, DAY_S = 3_600, 86_400
NOW_S = int(START.timestamp())
REGISTRY = registry()
USDX = REGISTRY.chains["memory"].token("USDX").contract
FLOOR = {"memory/USDX -> memory/MEM": "0.0005"}
OTHER_MERCHANT = KeyPath(account=2, change=1, index=0)
FAIR = (FairReader(),)

SWAP = ExchangeEffects(
    sold_contract=USDX,
    sold=Units(100_000_000),  # 100 USDX
    spender=ROUTER,
    chain="memory",
    bought_contract=None,
    bought_min=Units(5 * 10**16),  # 0.05 MEM
    recipient=address(WALLET),
)
BRIDGE = structs.replace(
    SWAP,
    chain="other",
    bought_contract=REGISTRY.chains["other"].token("USDX").contract,
    refund_to=address(WALLET),
    valid_until=NOW_S + 3_600,
)
FAIR_BRIDGE = structs.replace(BRIDGE, bought_min=Units(99_000_000))
BRIDGE_FLOOR = {"memory/USDX -> other/USDX": "0.99"}


class LyingReader(CallReader):
    """Says what no exchange can be, or fails in ways of its own. Without a spender, it cannot name one either."""

    def __init__(self, effects: ExchangeEffects | Exception, spender: str | None = None) -> None:
        self.effects = effects
        self.spender = spender

    def spenders(self, chain: ChainInfo) -> frozenset[str]:
        if self.spender is None:
            raise RuntimeError(chain.id)
        return frozenset({self.spender})

    def read(
        self, chain: ChainInfo, sender: str, call: Call, chains: Mapping[str, ChainInfo]
    ) -> ExchangeEffects | None:
        _ = chain, sender, call, chains
        if isinstance(self.effects, Exception):
            raise self.effects
        return self.effects


@pytest.fixture
def make(tmp_path, clock):
    """Open signers over one store, each with settings of its own."""
    with ExitStack() as stack:

        def make(*, readers=FAIR, **settings) -> LocalSigner:
            known = {**REGISTRY.families, "memory": CallingFamily()}
            told = msgspec.convert(settings, SignerSettings)
            rules = load_rules(Settings(signer=told), REGISTRY.chains, known)
            store = Store(tmp_path / "signer")
            stack.callback(store.close)
            exchanges = ExchangeReader(readers, REGISTRY.chains, rules.floor_rates)
            reader = Reader(KEYSTORE, known, REGISTRY.chains, exchanges)
            return LocalSigner(KEYSTORE, reader, rules=rules, store=store, clock=clock)

        yield make


def request(
    payload: bytes, *, path: KeyPath = WALLET, reference: str = "", asked_by: str = "key", **more
) -> SignRequest:
    return SignRequest(
        mode="live", chain="memory", payload=payload, path=path, purpose="swap", asked_by=asked_by,
        reference=reference or f"swap:{payload.hex()[:80]}", **more,
    )  # fmt: skip


def calling(effects: ExchangeEffects, sequence: int = 0, **more) -> SignRequest:
    reference = f"swap:txn_{sequence}"
    return request(exchange_payload(sequence=sequence, call=exchange_call(effects)), reference=reference, **more)


def approving(amount: int, *, spender: str = ROUTER, contract: str = USDX, path: KeyPath = WALLET) -> SignRequest:
    allowance = Allowance(contract=contract, spender=spender, amount=Units(amount))
    return request(exchange_payload(sequence=0, allowance=allowance), path=path)


def asked(folder, clock):
    store = Store(folder / "signer")
    try:
        with store.book(int(clock.now().timestamp())) as book:
            return book.asked()
    finally:
        store.close()


def approve(folder, clock) -> None:
    store = Store(folder / "signer")
    with store.book(int(clock.now().timestamp())) as book:
        for one in book.asked():
            book.approve(one.pk)
    store.close()


async def refusal(signer: LocalSigner, asked: SignRequest) -> str | None:
    return (await answer(signer, asked)).refusal


async def test_a_pinned_spender_is_allowed_so_much_and_nobody_else_anything(make):
    signer = make(hourly_caps={"memory/USDX": "100"})
    assert await refusal(signer, approving(100_000_000)) is None
    assert await refusal(signer, approving(0)) is None
    assert await refusal(signer, approving(1, spender=stranger("pool"))) == "SPENDER_NOT_ALLOWED"
    assert await refusal(signer, approving(0, contract=stranger("token"))) == "UNKNOWN_TOKEN"
    assert await refusal(signer, approving(1, contract=stranger("token"))) == "UNKNOWN_TOKEN"
    assert await refusal(signer, approving(100_000_001)) == "ALLOWANCE_ABOVE_CAP"


@pytest.mark.parametrize("amount", [2**255, 2**256 - 1])
async def test_no_allowance_is_without_end_whatever_the_caps(make, amount):
    assert await refusal(make(hourly_caps="unlimited"), approving(amount)) == "ALLOWANCE_WITHOUT_END"


@pytest.mark.parametrize("path", [DEPOSIT, GAS, KeyPath(account=1, change=1, index=1)])
async def test_only_main_wallets_approve_and_exchange(make, path):
    signer = make()
    assert await refusal(signer, approving(1, path=path)) == "EXCHANGE_NOT_ALLOWED"
    assert await refusal(signer, calling(SWAP, path=path)) == "EXCHANGE_NOT_ALLOWED"


async def test_an_allowance_of_whoever_it_is_can_be_taken_back(make):
    for readers in ((), FAIR):
        assert await refusal(make(readers=readers), approving(0, spender=stranger("pool"))) is None


async def test_without_readers_nothing_is_approved_and_nothing_called(make):
    signer = make(readers=())
    assert await refusal(signer, approving(1)) == "SPENDER_NOT_ALLOWED"
    assert await refusal(signer, calling(SWAP)) == "UNREADABLE_PAYLOAD"


async def test_a_call_that_no_reader_reads_whole_is_not_signed(make):
    signer = make()
    for call in (
        exchange_call(SWAP, to_address=stranger("router")),
        exchange_call(SWAP, data=b"{}"),
        exchange_call(SWAP, value=Units(1)),
    ):
        asked = request(exchange_payload(sequence=0, call=call))
        assert await refusal(signer, asked) == "UNREADABLE_PAYLOAD"


@pytest.mark.parametrize(
    "effects",
    [
        RuntimeError("a bug"),
        RecursionError(),
        structs.replace(SWAP, sold=Units(0)),
        structs.replace(SWAP, sold=Units(-5)),
        structs.replace(SWAP, bought_min=Units(0)),
        structs.replace(SWAP, sold_contract=None),
    ],
    ids=str,
)
async def test_a_reader_that_fails_or_says_what_cannot_be_signs_nothing(make, effects):
    assert await refusal(make(readers=[LyingReader(effects)]), calling(SWAP)) == "UNREADABLE_PAYLOAD"
    assert await refusal(make(readers=[LyingReader(effects)]), approving(1)) == "SPENDER_NOT_ALLOWED"


@pytest.mark.parametrize("spender", [stranger("pool"), None])
@pytest.mark.parametrize("error", [KeyError("router"), UnreadablePayloadError("an unknown function")], ids=repr)
async def test_a_reader_that_fails_on_what_others_read_changes_nothing_of_what_is_signed(make, spender, error):
    """Also where it calls unreadable what is none of its own, and should say None."""
    failing, unread = LyingReader(error, spender), exchange_call(SWAP, to_address=stranger("router"))
    signer = make(readers=[failing, *FAIR, failing])
    assert await refusal(signer, calling(SWAP)) is None
    assert await refusal(signer, request(exchange_payload(sequence=1, call=unread))) == "UNREADABLE_PAYLOAD"
    lie = structs.replace(SWAP, sold=Units(0))
    assert await refusal(signer, calling(lie, sequence=2)) == "UNREADABLE_PAYLOAD"


@pytest.mark.parametrize("error", [KeyError("flag"), UnreadablePayloadError("an unknown flag")], ids=repr)
async def test_what_others_say_of_a_call_counts_for_nothing_where_its_own_reader_fails(make, error):
    signer = make(readers=[LyingReader(error, ROUTER), *FAIR])
    assert await refusal(signer, calling(SWAP)) == "UNREADABLE_PAYLOAD"


@pytest.mark.parametrize("error", [KeyError, UnreadablePayloadError])
def test_who_builds_a_call_passes_over_the_same_readers_as_who_signs_it(error):
    def read(call: Call, *readers: CallReader) -> ExchangeEffects:
        infos = REGISTRY.chains
        return Readers(readers=readers, infos=infos).read(infos["memory"], address(WALLET), call)

    failing, own = LyingReader(error("router"), stranger("pool")), LyingReader(error("flag"), ROUTER)
    assert read(exchange_call(SWAP), failing, *FAIR) == SWAP
    for call, readers in (
        (exchange_call(SWAP, to_address=stranger("router")), (failing, *FAIR)),
        (exchange_call(SWAP), (own, *FAIR)),
    ):
        with pytest.raises(error):
            read(call, *readers)


@pytest.mark.parametrize(
    "changed, code",
    [
        ({"sold_contract": stranger("token")}, "UNKNOWN_TOKEN"),
        ({"bought_contract": stranger("token")}, "UNKNOWN_TOKEN"),
        ({"chain": "nowhere"}, "UNKNOWN_CHAIN"),
        ({"chain": "toy"}, "UNKNOWN_CHAIN"),
        ({"chain": "later"}, "UNKNOWN_CHAIN"),
        ({"refund_to": stranger("depositor")}, "REFUND_NOT_OURS"),
        ({"refund_to": address(DEPOSIT)}, "REFUND_NOT_OURS"),
    ],
)
async def test_money_goes_to_known_tokens_and_comes_back_to_where_it_was(make, changed, code):
    assert await refusal(make(), calling(structs.replace(SWAP, **changed))) == code


async def test_an_exchange_is_an_outflow_of_all_that_it_takes_also_into_our_own_wallet(make):
    signer = make(hourly_caps={"memory/USDX": "150"})
    assert await refusal(signer, calling(SWAP, 0)) is None
    assert await refusal(signer, calling(SWAP, 1)) == "HOURLY_CAP"
    assert await refusal(signer, calling(BRIDGE, 1)) == "HOURLY_CAP"


async def test_whoever_holds_api_and_database_cannot_swap_everything_into_a_pool_of_his_own(make, clock):
    """One unit comes back for each hundred, to the merchant's own wallet: nothing in it is false but the price."""
    signer = make(hourly_caps={"memory/USDX": "500"}, floor_rates=FLOOR)
    robbery = structs.replace(SWAP, bought_min=Units(1))
    taken = 0
    for sequence in range(50):
        taken += (await refusal(signer, calling(robbery, sequence, own=(WALLET,)))) is None
        clock.advance(60)
    assert taken == 5, "what the caps leave for the hour, and not one more"


async def test_at_the_operators_floor_rate_it_waits_for_nothing(make):
    signer = make(
        hourly_caps={"memory/USDX": "100", "memory/MEM": "0"},
        fresh_address_delay_s=DAY_S,
        approval_limits={"memory/USDX": "1"},
        allowed_addresses={"memory": ()},
        floor_rates=FLOOR,
    )
    assert await refusal(signer, calling(SWAP, 0)) is None


async def test_below_the_floor_it_may_be_anybodys_money(make):
    signer = make(fresh_address_delay_s=DAY_S, floor_rates=FLOOR)
    below = structs.replace(SWAP, bought_min=Units(SWAP.bought_min - 1))
    assert await refusal(signer, calling(below, 0, asked_by="platform")) == "PRICE_UNKNOWN"
    assert await refusal(signer, calling(SWAP, 0, asked_by="platform")) is None


async def test_what_loops_through_a_pool_at_the_floor_has_a_cap_of_its_own(make, clock):
    """A thief who owns the pool keeps the margin each time: the hour's cap bounds how often."""
    back = {"memory/MEM -> memory/USDX": "1600"}
    signer = make(hourly_caps={"memory/USDX": "350", "memory/MEM": "1"}, floor_rates={**FLOOR, **back})
    assert [await refusal(signer, calling(SWAP, number)) for number in range(4)] == [None] * 3 + ["HOURLY_CAP"]
    clock.advance(HOUR_S + 60)
    assert await refusal(signer, calling(SWAP, 3)) is None


async def test_a_known_recipient_makes_no_bad_price_better(make, clock):
    """Who is named in a call is not who gets the money: the delay would open the door for ever."""
    robbery = structs.replace(SWAP, bought_min=Units(1))
    signer = make(fresh_address_delay_s=DAY_S, session={"fresh_address_caps": {"memory/USDX": "0"}})
    for day in range(3):
        refused = await answer(signer, calling(robbery, day, asked_by="session"))
        assert (refused.refusal, refused.retry_at) == ("PRICE_UNKNOWN", None)
        clock.advance(DAY_S)
    some = make(fresh_address_delay_s=DAY_S, session={"fresh_address_caps": {"memory/USDX": "250"}})
    replies = [await answer(some, calling(robbery, 10 + number, asked_by="session")) for number in range(3)]
    assert [reply.refusal for reply in replies] == [None, None, "PRICE_UNKNOWN"]
    clock.set(replies[-1].retry_at)
    assert await refusal(some, calling(robbery, 12, asked_by="session")) is None


@pytest.mark.parametrize("listed", [{"memory": (address(WALLET),)}, {"other": (address(WALLET),)}])
async def test_an_allow_list_lets_no_bad_price_go_anywhere(make, listed):
    signer = make(allowed_addresses=listed)
    assert await refusal(signer, calling(BRIDGE)) == "TARGET_NOT_ALLOWED"


@pytest.mark.parametrize("recipient", [address(OTHER_MERCHANT), stranger("a"), address(DEPOSIT), address(GAS)])
async def test_to_somebody_else_a_good_price_is_a_payout(make, recipient):
    signer = make(hourly_caps={"memory/USDX": "0"}, floor_rates=FLOOR)
    own = (OTHER_MERCHANT, DEPOSIT, GAS)
    swap = structs.replace(SWAP, recipient=recipient)
    assert await refusal(signer, calling(swap, own=own)) == "HOURLY_CAP"


async def test_a_floor_is_for_its_pair_and_direction(make):
    floors = {**BRIDGE_FLOOR, "memory/MEM -> memory/USDX": "0.0000001"}
    signer = make(fresh_address_delay_s=DAY_S, floor_rates=floors)
    assert await refusal(signer, calling(SWAP, 0, asked_by="platform")) == "PRICE_UNKNOWN"
    assert await refusal(signer, calling(FAIR_BRIDGE, 1, asked_by="platform")) is None
    below = structs.replace(FAIR_BRIDGE, bought_min=Units(98_999_999))
    assert await refusal(signer, calling(below, 2, asked_by="platform")) == "PRICE_UNKNOWN"


async def test_a_recipient_on_another_chain_waits_and_is_known_there(make, clock):
    floors = {**BRIDGE_FLOOR, **FLOOR}
    caps = {"fresh_address_caps": {"memory/USDX": "0"}}
    signer = make(fresh_address_delay_s=DAY_S, key=caps, floor_rates=floors)
    there = structs.replace(FAIR_BRIDGE, recipient=stranger("a"))
    assert await refusal(signer, calling(there)) == "TARGET_TOO_FRESH"
    clock.advance(DAY_S)
    assert await refusal(signer, calling(there)) is None
    here = structs.replace(SWAP, recipient=stranger("a"))
    assert await refusal(signer, calling(here, 1)) == "TARGET_TOO_FRESH", "the same address of another chain"


async def test_the_other_chains_allow_list_holds(make):
    signer = make(allowed_addresses={"other": (stranger("a"),)}, floor_rates={**BRIDGE_FLOOR, **FLOOR})
    sent = {name: structs.replace(FAIR_BRIDGE, recipient=stranger(name)) for name in "ab"}
    assert await refusal(signer, calling(sent["b"])) == "TARGET_NOT_ALLOWED"
    assert await refusal(signer, calling(sent["a"])) is None
    assert await refusal(signer, calling(structs.replace(SWAP, recipient=stranger("b")), 1)) is None


async def test_no_allow_list_is_left_by_way_of_another_chain(make):
    signer = make(allowed_addresses={"memory": (stranger("a"),)}, floor_rates=BRIDGE_FLOOR)
    for name in "ab":
        sent = structs.replace(FAIR_BRIDGE, recipient=stranger(name))
        assert await refusal(signer, calling(sent)) == "TARGET_NOT_ALLOWED"
    assert await refusal(signer, calling(FAIR_BRIDGE)) is None, "which stays ours"


async def test_what_another_chain_pays_out_must_end(make):
    for endless in ({"refund_to": None}, {"valid_until": None}):
        assert await refusal(make(), calling(structs.replace(BRIDGE, **endless))) == "UNREADABLE_PAYLOAD"


async def test_what_another_chain_pays_out_must_come_back_within_two_days(make):
    def until(seconds):
        return calling(structs.replace(FAIR_BRIDGE, valid_until=NOW_S + seconds))

    signer = make(floor_rates=BRIDGE_FLOOR)
    assert await refusal(signer, until(AWAY_MAX_S + 1)) == "AWAY_TOO_LONG"
    assert await refusal(signer, until(AWAY_MAX_S)) is None


async def test_a_large_one_waits_for_a_person_who_sees_both_sides(make):
    signer = make(approval_limits={"memory/USDX": "100"})
    refused = await answer(signer, calling(structs.replace(SWAP, recipient=stranger("a"))))
    assert refused.refusal == "APPROVAL_NEEDED"
    assert "100 USDX for at least 0.05 MEM" in (refused.reason or "")


async def test_a_person_agrees_to_what_comes_back_as_well(make, tmp_path, clock):
    signer = make(approval_limits={"memory/USDX": "100"})
    good = structs.replace(SWAP, recipient=stranger("a"))
    assert await refusal(signer, calling(good)) == "APPROVAL_NEEDED"
    approve(tmp_path, clock)
    for worse in (
        structs.replace(good, bought_min=Units(good.bought_min - 1)),
        structs.replace(BRIDGE, recipient=stranger("a"), bought_min=good.bought_min),
    ):
        assert await refusal(signer, calling(worse)) == "APPROVAL_NEEDED"
    questions = [(one.text.partition(" for ")[2], one.to_chain) for one in asked(tmp_path, clock)]
    assert questions == [
        ("at least 0.049999999999999999 MEM", "memory"),
        ("at least 50000000000 USDX", "other"),
    ]
    assert await refusal(signer, calling(structs.replace(good, bought_min=Units(good.bought_min + 1)))) is None


@pytest.mark.parametrize(
    "table, sentence",
    [
        ({"memory/USDX": "1"}, "'memory/USDX' is no pair"),
        ({"memory/USDX -> memory/NONE": "1"}, "'memory/NONE' names no token"),
        ({"nowhere/USDX -> memory/MEM": "1"}, "there is no chain 'nowhere'"),
        ({"memory/USDX -> memory/MEM": "0"}, "is zero"),
    ],
)
def test_a_floor_rate_that_means_nothing_stops_the_start(make, table, sentence):
    with pytest.raises(SettingsError, match=sentence):
        make(floor_rates=table)
