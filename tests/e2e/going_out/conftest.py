"""Stories of money that goes out again, paid for by a gas station: they share a gateway on each kind of chain."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.opened import opened_by_folder as opened
from tests.support.quoter import Quoter

__all__ = ["opened"]


@pytest.fixture(scope="module")
def has_another(network) -> bool:
    """Have no chain beside TRON: what is sent on a wrong chain is sent to an address that is one on both."""
    return network.family == "evm"


@pytest.fixture(scope="module")
def signer_settings(network) -> Sequence[str]:
    """Have a process of its own sign for TRON; on the other chains the worker does."""
    return ["[signer]", "separate = true"] if network.family == "tron" else []


@pytest.fixture(scope="module")
async def quoter(opened, network) -> Quoter:
    """Run the market that two of the gateway's price sources read."""
    return await opened.once(("quoter", network), Quoter)


@pytest.fixture(scope="module")
def more_settings(quoter, signer_settings) -> Sequence[str]:
    return [*quoter.settings(), *signer_settings]
