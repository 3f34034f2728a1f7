"""What a tracker is told is the JSON that it would be if all of it was written for that tracker alone."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain, pairwise
from types import SimpleNamespace

import msgspec
import pytest

from cambist.domain.identifiers import DatedIds, sort_key
from cambist.services.trackers.bodies import End, Matches, Movement, Stage, delivery_id, pieces, written
from cambist.services.webhooks.outbox import TRACKER_COLUMNS

AWKWARD = '"\\u0000"\\ "\n\x01é漢😀\x7f</'
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def moved(text: str, sender: str | None) -> Movement:
    return Movement(
        id=1,
        tx_id=text,
        position="log:1",
        incarnation=1,
        first_mined_at=AT,
        sender=sender,
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


@pytest.mark.parametrize("stage,confirmations", [("detected", 3), ("confirmed", 3), ("orphaned", 0)])
@pytest.mark.parametrize("label", [None, "", "Till 1", AWKWARD])
@pytest.mark.parametrize("text", ["plain", AWKWARD])
def test_whatever_stands_in_it_each_piece_is_where_it_belongs(stage, confirmations, label, text):
    movement = moved(text, None)
    told = Stage(1, stage, 10, AT)
    end = End(text, 0, told, movement, "in", pieces(text, movement, told))
    written = end.body(msgspec.json.encode(text), b"mov_1", label)
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


def fields(row: bytes) -> list[bytes]:
    found = []
    while row:
        size = int.from_bytes(row[:4], "big")
        found.append(row[4 : 4 + size])
        row = row[4 + size :]
    return found


def test_what_is_copied_and_what_is_inserted_are_the_same_rows():
    trackers = {
        pk: SimpleNamespace(id=pk, webhook_id=f"trk_{pk}", url=f"https://{pk}.example", project_pk=10 + pk)
        for pk in (3, 4)
    }
    stages = [Stage(7, "detected", 10, AT), Stage(8, "confirmed", 11, AT)]
    movements = [moved("0x1", "0x9"), moved("0x2", "0x9")]
    matches = Matches([0, 1, 3], [3, 4, 4], [None, AWKWARD, ""])
    news = written("bench", stages, movements, matches, trackers)
    assert [(one.end.number, one.end.direction, one.target.pk) for one in news] == [
        (0, "in", 3),
        (0, "out", 4),
        (1, "out", 4),
    ]
    for one, label in zip(news, matches.labels, strict=True):
        tells = one.delivery()
        named = dict(zip(TRACKER_COLUMNS, fields(one.delivery_row), strict=True))
        for column, value in named.items():
            expected = getattr(tells, column)
            if isinstance(expected, int):
                assert int.from_bytes(value, "big") == expected, column
            else:
                assert value == (expected if isinstance(expected, bytes) else expected.encode()), column
        stage = stages[one.end.number]
        assert tells.delivery_id == delivery_id(tells.resource_id, stage.stage, 1)
        assert (tells.url, tells.project_pk) == (f"https://{tells.tracker_pk}.example", 10 + tells.tracker_pk)
        body = msgspec.json.decode(tells.body)
        assert (body["webhookId"], body["data"]["transactionId"]) == (f"trk_{tells.tracker_pk}", tells.resource_id)
        assert body["data"].get("label") == label
        row = fields(one.transaction_row)
        numbers = [int.from_bytes(value, "big") for value in row[1:3]]
        assert (row[0].decode(), numbers) == (tells.resource_id, [tells.tracker_pk, stage.movement_pk])
        assert [value.decode() for value in row[3:]] == [body["data"]["direction"], body["data"]["address"]]
    assert len({one.delivery_id for one in news}) == len(news)


def test_who_hears_is_cut_before_an_end():
    matches = Matches([0, 0, 1, 4, 4, 5], [1, 2, 1, 3, 4, 5], list("abcdef"))
    assert matches.before(4) == ([0, 0, 1], [1, 2, 1], list("abc"))
    assert matches.before(0) == ([], [], [])
    assert matches.before(6) == matches


def test_dated_identifiers_sort_by_their_second_and_their_group_and_tell_the_same_things_alike():
    earlier, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    firsts = [str(number).encode() for number in range(50)]
    groups = sorted((f"0x{number}" for number in range(20)), key=sort_key)
    assert len({sort_key(group) for group in groups}) == 20
    each = [(at, group) for at in (earlier, later) for group in groups]
    made = [[DatedIds("mov", at, "bench", group, group=group).of(first) for first in firsts] for at, group in each]
    assert all(max(one) < min(other) for one, other in pairwise(made))
    assert len(set(chain.from_iterable(made))) == 2000
    assert {len(one) for one in chain.from_iterable(made)} == {len("mov_") + 32}
    assert DatedIds("mov", earlier, "bench", groups[0], group=groups[0]).of(b"7") == made[0][7]
    others = [("bench", "0x2"), ("bench0x1",), ("0x1", "bench"), ("bench", "0x1", "")]
    unlike = {DatedIds("mov", earlier, *rest, group="0x1").of(b"7") for rest in (*others, ("bench", "0x1"))}
    assert len(unlike) == 5


def test_what_tells_of_a_stage_has_an_id_of_its_own_in_each_incarnation():
    ids = {
        delivery_id(f"mov_{number}", stage, incarnation)
        for number in (1, 11)
        for incarnation in (1, 2, 11)
        for stage in ("detected", "confirmed", "orphaned")
    }
    assert len(ids) == 18
    assert all(one.startswith("evt_") for one in ids)
