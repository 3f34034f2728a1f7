"""The catalogue, the signature and the schedule: what merchants were promised, to the letter."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st

from cambist.domain.webhooks import (
    EVENTS,
    EXTENDED_EVENTS,
    TRACKER_EVENTS,
    RetrySchedule,
    check_event,
    resource_of,
    sign_webhook,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_catalogue_has_thirteen_events_and_one_that_must_be_asked_for() -> None:
    assert len(EVENTS) == 13
    assert set(EXTENDED_EVENTS) == {
        "payment.underpaid", "payment.failed", "payment.partial", "payment.held",
        "refund.sent", "refund.completed", "refund.failed", "exchange.succeeded", "exchange.failed",
        "account.deposit.orphaned", "account.deposit.held",
    }  # fmt: skip
    assert resource_of("account.deposit.confirmed") == "account_deposit"
    assert all(resource_of(name) == name.split(".")[0] for name in EVENTS if not name.startswith("account."))
    with pytest.raises(ValueError, match=r"payment\.payed"):
        check_event("payment.payed")


@pytest.mark.parametrize("event", sorted(TRACKER_EVENTS))
def test_what_trackers_are_told_is_no_event_of_a_project(event):
    assert event not in EVENTS | EXTENDED_EVENTS
    with pytest.raises(ValueError, match="no webhook event"):
        check_event(event)


def test_the_signature_is_that_of_a_vector_made_elsewhere() -> None:
    """Made with: printf '1700000000000.{"a":1}' | openssl dgst -sha256 -hmac 00112233...(the 64 characters)."""
    signature = sign_webhook("00112233445566778899aabbccddeeff" * 2, 1_700_000_000_000, b'{"a":1}')
    assert signature == "81fcd1dced2682ddffd30219dbd8ab5695ad7b05ba38d40827777f7e2c358f3f"


@given(st.binary(min_size=32, max_size=32).map(bytes.hex), st.integers(0, 2**45), st.text())
def test_every_signature_verifies_independently_and_only_over_its_own_bytes(secret: str, at: int, text: str) -> None:
    body = text.encode("utf-8", "replace").decode()
    header = f"t={at},v1={sign_webhook(secret, at, body.encode())}"
    assert stripe.WebhookSignature.verify_header(body, header, secret, tolerance=None)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(body + " ", header, secret, tolerance=None)


def test_what_merchants_are_shown_takes_what_we_sign_and_nothing_that_is_five_minutes_old() -> None:
    page = Path(__file__).resolve().parents[2].joinpath("docs/merchants/webhooks.md").read_text()
    (shown,) = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def is_genuine" in code]
    known: dict[str, Any] = {}
    exec(compile(shown, "webhooks.md", "exec"), known)  # noqa: S102  our own documentation
    secret, body, now_ms = "ab" * 32, b'{"a":1}', int(time.time() * 1000)
    for sent_ms, is_taken in ((now_ms, True), (now_ms - 310_000, False), (now_ms + 310_000, False)):
        signature = sign_webhook(secret, sent_ms, body)
        assert known["is_genuine"](secret, str(sent_ms), signature, body) is is_taken
        assert not known["is_genuine"](secret, str(sent_ms), signature, body + b" ")


def test_without_a_secret_the_signature_is_empty() -> None:
    assert sign_webhook(None, 1, b"{}") == ""


def test_retries_wait_1_2_4_8_and_16_seconds_and_then_no_more() -> None:
    schedule = RetrySchedule()
    waits = [due - NOW for n in range(1, 6) if (due := schedule.next_due(n, NOW)) is not None]
    assert waits == [timedelta(seconds=seconds) for seconds in (1, 2, 4, 8, 16)]
    assert schedule.next_due(6, NOW) is None
    assert schedule.retries == 5


def test_an_operator_may_ask_for_no_retries_or_other_waits() -> None:
    assert RetrySchedule(retries=0).next_due(1, NOW) is None
    assert RetrySchedule(retries=2, base_delay_ms=250).next_due(2, NOW) == NOW + timedelta(milliseconds=500)
