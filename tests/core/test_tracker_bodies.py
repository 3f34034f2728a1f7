"""What a tracker is told is the JSON that it would be if all of it was written for that tracker alone."""

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import msgspec
import pytest

from cambist.domain.identifiers import dated_id
from cambist.services.trackers.bodies import body, pieces

AWKWARD = '"\\u0000"\\ "\n\x01é漢😀\x7f</'
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.mark.parametrize("stage,confirmations", [("detected", 3), ("confirmed", 3), ("orphaned", 0)])
@pytest.mark.parametrize("label", [None, "", "Till 1", AWKWARD])
@pytest.mark.parametrize("text", ["plain", AWKWARD])
def test_whatever_stands_in_it_each_piece_is_where_it_belongs(stage, confirmations, label, text):
    movement = SimpleNamespace(
        tx_id=text,
        sender=None,
        recipient=text,
        token=text,
        contract=text,
        decimals=6,
        units=Decimal("1.5E+6"),
        height=7,
        block_hash=text,
        mined_at=AT,
        required_confirmations=12,
    )
    written = body(pieces(text, movement, stage, 10, AT), text, "mov_1", "in", text, label)
    shown = {
        "event": f"transaction.{stage}",
        "webhookId": text,
        "data": {
            "resource": "transaction",
            "transactionId": "mov_1",
            "chain": text,
            "txHash": text,
            "direction": "in",
            "address": text,
            **({} if label is None else {"label": label}),
            "from": None,
            "to": text,
            "token": text,
            "contractAddress": text,
            "amount": "1.5",
            "blockNumber": 7,
            "blockHash": text,
            "blockTime": "2026-01-02T03:04:05.678Z",
            "confirmations": confirmations,
            "requiredConfirmations": 12,
            "status": stage,
            "timestamp": "2026-01-02T03:04:05.678Z",
        },
    }
    assert written == msgspec.json.encode(shown)


def test_dated_identifiers_sort_by_their_second_and_tell_the_same_things_alike():
    earlier, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    made = [dated_id("evt", at, "mov_1", number) for at in (earlier, later) for number in map(str, range(50))]
    assert max(made[:50]) < min(made[50:])
    assert len(set(made)) == 100
    assert {len(one) for one in made} == {len("evt_") + 32}
    assert dated_id("evt", earlier, "mov_1", "7") == made[7]
