"""What of a plugin's settings is shown to operators."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from cambist.registry.brought import shown_settings


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    rpc_urls: tuple[str, ...] = ()
    trace: Literal["auto", "off"] = "auto"
    quorum: int = 1


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    nodes: Mapping[str, Node] = {}
    api_key: int = 0
    rate: Decimal | None = None
    is_open: bool = False
    label: str = ""


def test_settings_are_shown_but_for_every_text_that_may_be_a_key():
    node = Node(rpc_urls=("https://node.example/v2/s3cr3t",), trace="off", quorum=2)
    table = Table(nodes={"one": node, "two": Node()}, api_key=4711, rate=Decimal("1E+2"), is_open=True, label="s3cr3t")
    shown = {one.name: one.value for one in shown_settings([table])}
    assert shown == {
        "nodes.one.rpc_urls[0]": None,
        "nodes.one.trace": "off",
        "nodes.one.quorum": "2",
        "api_key": None,
        "rate": "100",
        "is_open": "true",
        "label": None,
    }
    assert shown_settings([Table()]) == []
