"""The bodies of webhooks are as described: the made-up ones here, all others wherever a test has them made."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from cambist.domain.webhooks import EVENTS, EXTENDED_EVENTS, TEST_EVENT, TRACKER_EVENTS
from cambist.ports import Ids
from cambist.services.trackers import bodies, testing
from cambist.services.webhooks.payloads import PAYLOADS
from cambist.services.webhooks.samples import sample
from tests.support.payloads import as_described

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_every_event_has_a_payload_and_nothing_else_does():
    assert set(PAYLOADS) == {*EVENTS, *EXTENDED_EVENTS, *TRACKER_EVENTS, TEST_EVENT}


@pytest.mark.parametrize("event", [*EVENTS, *EXTENDED_EVENTS])
def test_what_is_made_up_for_a_test_is_as_described(event):
    as_described(event, sample(event, Ids(bytes), NOW))


def test_what_a_tracker_is_told_is_as_described():
    as_described("transaction.confirmed", testing.sample("ethereum", "ETH", 12, Ids(bytes), NOW))
    described = {field.encode_name for field in msgspec.structs.fields(PAYLOADS["transaction.detected"])}
    assert described - {"isTest"} == {field.encode_name for field in msgspec.structs.fields(bodies.Transaction)}


def test_what_is_not_described_is_found():
    with pytest.raises(AssertionError, match=r"payment\.paid is not as described: .*unknown field `more`"):
        as_described("payment.paid", sample("payment.paid", Ids(bytes), NOW) | {"more": 1})
