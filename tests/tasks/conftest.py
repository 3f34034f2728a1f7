"""What several files about jobs use."""

from __future__ import annotations

import pytest

from tests.support.valkey import mortal_valkey


@pytest.fixture
def valkey(tmp_path):
    """Give a server of this test's own, to be killed."""
    with mortal_valkey(tmp_path) as valkey:
        yield valkey
