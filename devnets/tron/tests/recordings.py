"""Recorded answers of real nodes, which the tests of the plugin and the benchmarks read, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> Any:
    """Return one recorded answer, or several."""
    found = json.loads((RECORDED / f"{name}.json").read_bytes())
    return found.get("response", found.get("responses", found))
