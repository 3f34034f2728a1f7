"""Statements as text with named parameters: written once per process, and sent without building anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection

_NAME = re.compile(r"(?<!:):([a-z_]+)")


class Statement:
    """A statement whose parameters are written ``:name``, numbered once for the driver."""

    def __init__(self, text: str) -> None:
        self._names = list(dict.fromkeys(_NAME.findall(text)))
        numbers = {name: number for number, name in enumerate(self._names, start=1)}
        self._text = _NAME.sub(lambda match: f"${numbers[match[1]]}", text)

    def bind(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the text and the values in the order of its parameters."""
        return (self._text, *self._ordered(values))

    async def run(self, conn: AsyncConnection, values: Mapping[str, Any]) -> CursorResult[Any]:
        """Run it on a connection."""
        return await conn.exec_driver_sql(self._text, self._ordered(values))

    def _ordered(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple([values[name] for name in self._names])
