"""Stories of money that goes out again, paid for by a gas station: they share a gateway on each kind of chain."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.opened import opened_by_folder as opened
from tests.support.quoter import Quoter

__all__ = ["opened"]


@pytest.fixture(scope="module")
def by_exec(network) -> bool:
    """Have processes that hold in memory what they read themselves, where a story looks for secrets there."""
    return network.family == "evm"


@pytest.fixture(scope="module")
async def quoter(opened, network) -> Quoter:
    """Run the market that two of the gateway's price sources read."""
    return await opened.once(("quoter", network), Quoter)


@pytest.fixture(scope="module")
def more_settings(quoter) -> Sequence[str]:
    return quoter.settings()
