"""What a tracker is told is the JSON that it would be if all of it was written for that tracker alone."""

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import msgspec
import pytest

from cambist.domain.identifiers import DatedIds
from cambist.services.trackers.bodies import End, Stage, delivery_id, pieces

AWKWARD = '"\\u0000"\\ "\n\x01é漢😀\x7f</'
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.mark.parametrize("stage,confirmations", [("detected", 3), ("confirmed", 3), ("orphaned", 0)])
@pytest.mark.parametrize("label", [None, "", "Till 1", AWKWARD])
@pytest.mark.parametrize("text", ["plain", AWKWARD])
def test_whatever_stands_in_it_each_piece_is_where_it_belongs(stage, confirmations, label, text):
    movement = SimpleNamespace(
        tx_id=text,
        position="log:1",
        incarnation=1,
        first_mined_at=AT,
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
    told = Stage(1, stage, 10, AT)
    end = End(text, told, movement, "in", pieces(text, movement, *told[1:]))
    written = end.body(msgspec.json.encode(text), "mov_1", label)
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
    firsts = [str(number).encode() for number in range(50)]
    made = [DatedIds("mov", at, "bench", "0x1").of(first) for at in (earlier, later) for first in firsts]
    assert max(made[:50]) < min(made[50:])
    assert len(set(made)) == 100
    assert {len(one) for one in made} == {len("mov_") + 32}
    assert DatedIds("mov", earlier, "bench", "0x1").of(b"7") == made[7]
    others = [("bench", "0x2"), ("bench0x1",), ("0x1", "bench"), ("bench", "0x1", "")]
    assert not {DatedIds("mov", earlier, *rest).of(b"7") for rest in others} & set(made)


def test_what_tells_of_a_stage_has_an_id_of_its_own_in_each_incarnation():
    ids = {
        delivery_id(f"mov_{number}", SimpleNamespace(incarnation=incarnation), stage)
        for number in (1, 11)
        for incarnation in (1, 2, 11)
        for stage in ("detected", "confirmed", "orphaned")
    }
    assert len(ids) == 18
    assert all(one.startswith("evt_") for one in ids)
