"""What a page shows, decided without a server: progress, links, refreshing, and colours that can be read."""

import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

import cambist_web.checkout
from cambist.domain.payments import Status
from cambist.plugin import Units
from cambist_web.checkout.build import checkout_view
from cambist_web.checkout.returns import REASONS
from cambist_web.checkout.steps import confirmations
from cambist_web.checkout.wording import clock_text
from tests.support.checkout_samples import CHAIN, FAMILY, NOW, SAMPLES, deposit, payment, view

CSS = Path(cambist_web.checkout.__file__).with_name("static") / "checkout.css"


def test_only_an_open_payment_asks_for_money():
    asking = {name for name, sample in SAMPLES.items() if view(sample).pay}
    assert asking == {"pending", "pending-sandbox", "pending-tron", "part-paid"}


def test_the_code_asks_for_what_is_missing():
    box = view(SAMPLES["part-paid"]).pay
    assert box.amount == "7.5"
    assert box.qr_text.endswith("uint256=7500000")
    assert box.wallet_uri == box.qr_text
    assert box.address == SAMPLES["part-paid"].address


def test_a_page_that_asks_for_nothing_does_not_say_that_it_waits_for_a_payment():
    shown = view(SAMPLES["suspended"])
    assert shown.headline == "No payments at present"
    assert (shown.steps, shown.pay, shown.countdown) == ((), None, None)


@pytest.mark.parametrize("address", ["0.0.48213", "alice", "0.0.12345678", "0.0.123456789"])
def test_a_short_address_is_shown_as_it_is(address):
    box = view(msgspec.structs.replace(SAMPLES["pending"], address=address)).pay
    assert box.address == address


def test_where_the_code_is_the_address_alone_the_page_says_so_and_offers_no_link():
    box = view(SAMPLES["pending-tron"]).pay
    assert box.qr_text == box.address == SAMPLES["pending-tron"].address
    assert box.wallet_uri is None
    assert box.qr_caption == "Scan the address, then enter the amount"
    assert view(SAMPLES["pending"]).pay.qr_caption == "Scan with your wallet"


def test_the_warning_calls_the_network_what_wallets_and_exchanges_call_it():
    assert view(SAMPLES["pending-tron"]).pay.warning == "Send only USDT on TRON (TRC-20). Anything else may be lost."
    assert view(SAMPLES["pending"]).pay.warning == "Send only USDC on Ethereum (ERC-20). Anything else may be lost."
    coin = msgspec.structs.replace(SAMPLES["pending-tron"], token="TRX", contract=None)
    assert view(coin).pay.warning == "Send only TRX on TRON. Anything else may be lost."


def test_progress_shows_confirmations_before_a_block_is_final_and_the_last_one_after():
    (now,) = [step for step in view(SAMPLES["confirming-tron"]).steps if step.state == "now"]
    assert (now.detail, view(SAMPLES["confirming-tron"]).transfers[0].detail) == (
        "12 of 19",
        "12 of 19 confirmations",
    )
    assert view(SAMPLES["confirming-tron"]).transfers[0].url.startswith("https://tronscan.org/#/transaction/57b7")


def test_a_test_payment_is_not_opened_in_a_wallet_and_has_no_explorer():
    sample = payment(Status.CONFIRMING, deposit(53_623_659), mode="sandbox")
    assert view(SAMPLES["pending-sandbox"]).pay.wallet_uri is None
    assert view(sample).transfers[0].url is None
    assert view(sample).sandbox


def test_links_to_an_explorer_are_web_addresses_of_the_payments_own_chain():
    transfer = deposit(53_623_659, tx_id="0x/../?a=b")
    sample = payment(Status.CONFIRMING, transfer, deposit(1, chain="base", matches=False))
    own, other = view(sample).transfers
    assert own.url == "https://etherscan.io/tx/0x%2F..%2F%3Fa%3Db"
    assert other.url is None
    hostile = msgspec.structs.replace(CHAIN, explorer_tx_url="javascript:{tx_id}")
    assert checkout_view(sample, NOW, hostile, FAMILY).transfers[0].url is None


def test_progress_counts_the_slowest_transfer_that_is_needed_and_no_later_dust():
    slow, fast, dust = deposit(9_000_000, confirmations=2), deposit(1_000_000, confirmations=5), deposit(1)
    sample = payment(
        Status.CONFIRMING, fast, slow, msgspec.structs.replace(dust, head=1000), expected=Units(10_000_000)
    )
    (now,) = [step for step in view(sample).steps if step.state == "now"]
    assert (now.done, now.whole) == (2, 12)


@pytest.mark.parametrize(
    "fields, required, expected",
    [
        ({"head": 1000}, False, 0),
        ({"head": 1005}, False, 5),
        ({"head": 5000}, False, 12),
        ({"head": 999}, False, 0),
        ({"head": None}, False, 0),
        ({"head": 1005, "finalized": 998}, True, 5),
        ({"head": 1020, "finalized": 999}, True, 11),
        ({"head": 1020, "finalized": None}, True, 11),
        ({"head": 1020, "finalized": 1000}, True, 12),
        ({"head": 1005, "finalized": 1002}, True, 5),
        ({"head": 1001, "confirmed": True}, True, 12),
    ],
)
def test_confirmations_are_blocks_above_the_transfers_own_and_the_last_needs_finality(fields, required, expected):
    assert confirmations(deposit(1, **fields), finality_required=required) == expected


@pytest.mark.parametrize(
    "name, refresh_s",
    [
        *((name, 10) for name in ("pending", "part-paid", "time-is-up", "detected", "confirming")),
        *((name, None) for name in ("paid", "overpaid", "refunded", "expired")),
        ("failed", 60),
    ],
)
def test_a_page_is_followed_as_long_as_it_can_change(name, refresh_s):
    assert view(SAMPLES[name]).refresh_s == refresh_s


def test_a_failed_payment_is_not_watched_for_ever():
    assert view(SAMPLES["failed"], NOW + timedelta(hours=2)).refresh_s is None


def test_there_is_a_receipt_exactly_in_the_states_that_end_an_order():
    assert {view(sample).status for sample in SAMPLES.values() if view(sample).has_receipt} == {
        "paid",
        "overpaid",
        "underpaid",
        "refunded",
    }


def test_the_shop_is_told_why_the_customer_comes_back():
    for sample in SAMPLES.values():
        shown = view(sample)
        for way in filter(None, (shown.forward, shown.back)):
            assert f"status={shown.status}" in way.url
            assert way.url.rpartition("reason=")[2] in REASONS.values()
    assert "lang=en&paymentId=" in view(SAMPLES["pending"]).back.url
    assert view(SAMPLES["part-paid"]).back.url.endswith("reason=part_received")


def test_nobody_is_offered_to_cancel_while_money_is_under_way():
    for name in ("detected", "confirming"):
        assert view(SAMPLES[name]).back is None
        assert view(SAMPLES[name]).forward is None


def test_only_a_paid_order_leads_on_by_itself():
    assert {name for name, sample in SAMPLES.items() if (way := view(sample).forward) and way.auto_s} == {
        "paid",
        "overpaid",
    }


def test_surplus_after_the_order_was_paid_is_said_to_be_held():
    sample = payment(Status.PAID, deposit(53_623_659, confirmed=True), deposit(1_000_000, confirmed=True))
    assert view(sample).notes == ("1 USDC more than needed arrived. It is held for you: contact Nordlicht Coffee.",)


@pytest.mark.parametrize(
    "seconds, text",
    [(-5, "00:00"), (59.9, "00:59"), (3599, "59:59"), (3909, "1:05:09"), (86_400 * 6 + 3600, "6 d 1 h")],
)
def test_time_is_written_as_on_a_clock(seconds, text):
    assert clock_text(timedelta(seconds=seconds)) == text


def luminance(colour):
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    parts = [int(digits[index : index + 2], 16) / 255 for index in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_has_the_contrast_that_accessibility_asks_for(scheme):
    root = re.findall(r":root \{(.*?)\n *\}", CSS.read_text(), re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([a-z-]+): #([0-9a-f]{3,6});", root))
    pairs = [("ink", "card"), ("muted", "card"), ("muted", "sunk"), ("muted", "ground"), ("on-accent", "accent")]
    pairs += [(tone, f"{tone}-soft") for tone in ("wait", "work", "good", "care", "bad", "accent")]
    pairs += [(tone, "card") for tone in ("wait", "work", "good", "care", "bad", "accent")]
    for text, ground in pairs:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
