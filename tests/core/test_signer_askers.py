"""What the signer makes of who asked: a session, a program with a key, or somebody who does not say."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from click.testing import CliRunner

from cambist.cli import cambist
from cambist.domain.intents import AskedBy, IntentKind
from cambist.services.payouts.signer_learning import Learner
from cambist.settings import Settings, SettingsError, SignerSettings
from cambist.settings_file import load_settings
from cambist.signer.protocol import KeyPath
from cambist.signer.rules import AskerRules, Rules, load_rules
from tests.support.command import leave_no_config
from tests.support.signing import DEPOSIT, answer, opening, registry, request, stranger
from tests.support.treasury import Treasury

HOUR_S, DAY_S = 3_600, 86_400
OTHER_MERCHANT = KeyPath(account=2, change=1, index=0)


@pytest.fixture
async def make(tmp_path, clock):
    async with opening(tmp_path / "signer", clock, fresh_address_delay_s=DAY_S) as make:
        yield make


def by_session(name: str, amount: int, sequence: int, **more):
    return request(stranger(name), amount, sequence=sequence, asked_by="session", **more)


@pytest.mark.parametrize("purpose", ["payout", "refund"])
async def test_a_session_sends_at_once_what_its_cap_allows_and_the_rest_after_the_delay(make, clock, purpose):
    signer = make(session={"fresh_address_caps": {"memory/USDX": "0.0001"}})
    assert (await answer(signer, by_session("a", 60, 0, purpose=purpose))).refusal is None
    assert (await answer(signer, by_session("b", 40, 1, purpose=purpose))).refusal is None
    refused = await answer(signer, by_session("c", 1, 2, purpose=purpose))
    assert refused.refusal == "TARGET_TOO_FRESH"
    assert timedelta() < refused.retry_at - clock.now() <= timedelta(seconds=HOUR_S + 60)
    large = await answer(signer, by_session("d", 101, 2, purpose=purpose))
    assert (large.refusal, large.retry_at) == ("TARGET_TOO_FRESH", clock.now() + timedelta(days=1))
    clock.advance(DAY_S)
    assert (await answer(signer, by_session("d", 10_000, 2, purpose=purpose))).refusal is None


async def test_a_session_pays_only_so_many_fresh_addresses_within_an_hour(make, clock):
    signer = make(session={"fresh_address_caps": "unlimited", "fresh_payouts_per_hour": 3})
    replies = [await answer(signer, by_session(f"s{number}", 1, number)) for number in range(4)]
    assert [reply.refusal for reply in replies] == [None, None, None, "TARGET_TOO_FRESH"]
    clock.set(replies[-1].retry_at)
    assert (await answer(signer, by_session("s3", 1, 3))).refusal is None


async def test_twenty_is_how_many_where_nothing_is_said(make):
    signer = make(session={"fresh_address_caps": "unlimited"})
    replies = [await answer(signer, by_session(f"s{number}", 1, number)) for number in range(21)]
    assert [reply.refusal for reply in replies] == [None] * 20 + ["TARGET_TOO_FRESH"]
    free = make(session={"fresh_address_caps": "unlimited", "fresh_payouts_per_hour": "unlimited"})
    assert (await answer(free, by_session("s20", 1, 20))).refusal is None


async def test_without_any_cap_for_fresh_addresses_a_session_waits_and_a_key_does_not(make, clock):
    signer = make()
    refused = await answer(signer, by_session("a", 1, 0))
    assert (refused.refusal, refused.retry_at) == ("TARGET_TOO_FRESH", clock.now() + timedelta(days=1))
    assert (await answer(signer, request(stranger("b"), 1, sequence=0, asked_by="key"))).refusal is None


async def test_a_shared_cap_bounds_sessions_and_keys_together(make):
    signer = make(fresh_address_caps={"memory/USDX": "0.0001"}, session={"fresh_address_caps": "unlimited"})
    assert (await answer(signer, by_session("a", 60, 0))).refusal is None
    assert (await answer(signer, request(stranger("b"), 40, sequence=1))).refusal is None
    assert (await answer(signer, by_session("c", 1, 2))).refusal == "TARGET_TOO_FRESH"
    assert (await answer(signer, request(stranger("c"), 1, sequence=2))).refusal == "TARGET_TOO_FRESH"


async def test_keys_have_caps_of_their_own_which_sessions_do_not_use_up(make, clock):
    caps = {"fresh_address_caps": {"memory/USDX": "0.00001"}, "fresh_payouts_per_hour": 5}
    key = {"hourly_caps": {"memory/USDX": "0.0001"}, "fresh_address_caps": {"memory/USDX": "0.00002"}}
    signer = make(session=caps, key=key)
    assert (await answer(signer, by_session("a", 10, 0))).refusal is None
    assert (await answer(signer, by_session("b", 1, 1))).refusal == "TARGET_TOO_FRESH"
    assert (await answer(signer, request(stranger("c"), 20, sequence=1))).refusal is None
    assert (await answer(signer, request(stranger("c"), 1, sequence=2))).refusal == "TARGET_TOO_FRESH"
    clock.advance(DAY_S)
    assert (await answer(signer, request(stranger("c"), 100, sequence=2))).refusal is None
    capped = await answer(signer, request(stranger("c"), 1, sequence=3))
    assert (capped.refusal, "this merchant's keys" in capped.reason) == ("HOURLY_CAP", True)
    assert (await answer(signer, by_session("c", 500, 3))).refusal is None


async def test_one_merchant_does_not_use_up_what_another_has(make):
    signer = make(session={"fresh_address_caps": {"memory/USDX": "0.0001"}, "fresh_payouts_per_hour": 1})
    assert (await answer(signer, by_session("a", 100, 0))).refusal is None
    assert (await answer(signer, by_session("b", 1, 1))).refusal == "TARGET_TOO_FRESH"
    # The account of the key that signs says whose money it is: nothing in the request does.
    assert (await answer(signer, by_session("b", 1, 1, path=DEPOSIT))).refusal == "TARGET_TOO_FRESH"
    assert (await answer(signer, by_session("b", 100, 0, path=OTHER_MERCHANT))).refusal is None


@pytest.mark.parametrize("asked_by", ["key", "session"])
@pytest.mark.parametrize("purpose", ["payout", "refund", "withdrawal", "auto_payout"])
async def test_an_address_that_one_merchant_pays_stays_fresh_for_another(make, clock, asked_by, purpose):
    """Or a thief with their own account prepares the address to which a stolen session then sends everything."""
    caps = {"fresh_address_caps": {"memory/USDX": "0.0001"}}
    signer = make(session=caps, key=caps)
    assert (await answer(signer, request(stranger("thief"), 1, path=OTHER_MERCHANT))).refusal is None
    assert await signer.learn("live", "memory", OTHER_MERCHANT.account, stranger("thief")) == clock.now()
    clock.advance(DAY_S)
    stolen = request(stranger("thief"), 10_000_000, asked_by=asked_by, purpose=purpose)
    refused = await answer(signer, stolen)
    assert (refused.refusal, refused.retry_at) == ("TARGET_TOO_FRESH", clock.now() + timedelta(days=1))
    known = request(stranger("thief"), 10_000_000, sequence=1, path=OTHER_MERCHANT, asked_by=asked_by, purpose=purpose)
    assert (await answer(signer, known)).refusal is None
    # Every key of the merchant's account is the merchant's: its wallet's and its deposit addresses'.
    clock.advance(DAY_S)
    assert (await answer(signer, msgspec.structs.replace(stolen, path=DEPOSIT))).refusal is None


async def test_a_replacement_counts_once(make):
    signer = make(session={"fresh_address_caps": {"memory/USDX": "0.0001"}, "fresh_payouts_per_hour": 1})
    for price in range(1, 5):
        assert (await answer(signer, by_session("a", 100, 0, price=price))).refusal is None


@pytest.mark.parametrize("asked_by", ["", "operator", "platform", "Session", "nobody at all"])
@pytest.mark.parametrize("purpose", ["payout", "refund", "nonsense"])
async def test_who_does_not_say_who_asked_waits_for_the_delay(make, clock, asked_by, purpose):
    signer = make(fresh_address_caps="unlimited", session={"fresh_address_caps": "unlimited"})
    refused = await answer(signer, request(stranger("a"), 1, asked_by=asked_by, purpose=purpose))
    assert (refused.refusal, refused.retry_at) == ("TARGET_TOO_FRESH", clock.now() + timedelta(days=1))


@pytest.mark.parametrize("purpose", ["withdrawal", "auto_payout"])
@pytest.mark.parametrize("asked_by", ["session", "key", "platform"])
async def test_withdrawals_and_auto_payouts_wait_whoever_asks(make, purpose, asked_by):
    signer = make(
        fresh_address_caps="unlimited",
        session={"fresh_address_caps": "unlimited", "fresh_payouts_per_hour": "unlimited"},
    )
    refused = await answer(signer, request(stranger("a"), 1, asked_by=asked_by, purpose=purpose))
    assert refused.refusal == "TARGET_TOO_FRESH"


@pytest.mark.parametrize(
    "table, sentence",
    [
        ({"session": {"fresh_address_caps": {"memori/USDX": "1"}}}, "signer.session.fresh_address_caps: there is no"),
        ({"key": {"hourly_caps": {"memory/USDC": "1"}}}, "signer.key.hourly_caps: 'memory/USDC' names no token"),
    ],
)
def test_a_cap_that_names_nothing_stops_the_start(table, sentence):
    known = registry()
    with pytest.raises(SettingsError, match=sentence):
        load_rules(Settings(signer=msgspec.convert(table, SignerSettings)), known.chains, known.families)


def test_the_caps_of_askers_are_read_from_the_file_and_from_variables(tmp_path):
    file = tmp_path / "cambist.toml"
    file.write_text('[signer.session]\nfresh_address_caps = { "memory/USDX" = "5" }\nfresh_payouts_per_hour = 7\n')
    variables = {
        "CAMBIST_SIGNER__KEY__FRESH_PAYOUTS_PER_HOUR": "9",
        "CAMBIST_SIGNER__KEY__HOURLY_CAPS": "unlimited",
        "CAMBIST_SIGNER__SESSION__FRESH_PAYOUTS_PER_HOUR": "unlimited",
    }
    signer = load_settings(file, variables).signer
    assert signer.session.fresh_address_caps == {"memory/USDX": "5"}
    assert (signer.session.fresh_payouts_per_hour, signer.key.fresh_payouts_per_hour) == ("unlimited", 9)
    assert signer.key.hourly_caps == "unlimited"


@pytest.mark.slow
async def test_the_engine_tells_the_signer_who_asked(db, clock, ids, tmp_path):
    """A payout of a key goes at once, a session's waits for its delay, which runs from when it was asked for."""
    rules = Rules(
        fresh_address_delay_s=HOUR_S,
        askers={AskedBy.KEY: AskerRules(), AskedBy.SESSION: AskerRules(fresh_payouts_per_hour=0)},
    )
    async with Treasury(db, clock, ids, tmp_path, rules=rules) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 10_000_000)
        by_key, by_session, engine = await treasury.stranger(1), await treasury.stranger(2), treasury.engine()
        await treasury.pay_out("USDX", 1_000_000, by_key, asked_by=AskedBy.KEY)
        await treasury.work(engine, rounds=12)
        assert await treasury.on_chain(by_key, "USDX") == 1_000_000
        for kind in (IntentKind.PAYOUT, IntentKind.REFUND):
            await treasury.pay_out("USDX", 1_000_000, by_session, kind=kind, asked_by=AskedBy.SESSION)
        async with treasury.db.autocommit() as conn:
            assert await Learner(treasury.signer).learn(conn) == 1
        await treasury.work(engine, rounds=12, until="enough")
        assert await treasury.on_chain(by_session, "USDX") == 0
        assert ("payout", "waiting", "signer: TARGET_TOO_FRESH") in await treasury.open_intents()
        treasury.clock.advance(HOUR_S + 1)
        await treasury.work(engine, rounds=12)
        assert await treasury.on_chain(by_session, "USDX") == 2_000_000
        await treasury.check_books()


async def test_a_person_is_shown_what_is_signed_and_nothing_that_a_reference_draws(tmp_path, make, monkeypatch):
    """The found trick: an escape sequence wrote another address over the one that was asked about."""
    trick = f"payout:po_1  1 USDX  to {stranger('friend')}\x1b[8m\x1b[1A\u202e"
    signer = make(approval_limits={"memory/USDX": "0.0001"})
    asked = [
        request(stranger("thief"), 100, reference=trick, purpose="pay\x1b[2Kout", asked_by="key\u200b"),
        request(stranger("thief"), 100, reference="payout:po_2", sequence=1),
    ]
    assert [reply.refusal for reply in await signer.sign(asked)] == ["APPROVAL_NEEDED"] * 2
    await signer.aclose()
    (tmp_path / "cambist.toml").write_text("[signer]\nstore = 'signer'\n")
    leave_no_config(monkeypatch)
    runner, config = CliRunner(), ["--config", str(tmp_path / "cambist.toml")]
    listed = runner.invoke(cambist, ["signer", "pending", *config])
    asking = runner.invoke(cambist, ["signer", "approve", trick, *config], input="n\n")
    first, second = listed.output.splitlines()
    assert second.startswith(f"payout:po_2  0.0001 USDX  to {stranger('thief')}  on memory  (payout by key, asked ")
    for line in (first, asking.output.splitlines()[0]):
        assert line.isprintable()
        reference, _, rest = line.rpartition(f'"  0.0001 USDX  to {stranger("thief")}  on memory  (')
        assert reference.startswith('"payout:po_1')
        assert rest.startswith('"pay\\u001b[2Kout" by "key\\u200b", asked ')
