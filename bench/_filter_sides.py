"""The filter of addresses in benchmarks: in a process of its own, so that what it takes in memory can be told."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from _harness import sized
from _scan_ours import Scanner

from cambist.services.receiving.deposits import AddressCache
from cambist.services.receiving.deposits.address_filter import AddressFilter

KEYS_AT_ONCE = 1_000_000
LOOKUPS = sized(100_000, tiny=1_000)
KEY_BYTES = 20
SAVED_WITHIN_S = 60


def resident_mb() -> float:
    """Return what this process holds now, where the system tells; else nothing that could be compared."""
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[1]) if statm.exists() else 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class CrowdedScanner(Scanner):
    """A scanner in whose filter there are, beside the addresses of the tables, so many that nobody ever sees."""

    async def crowd(self, count: int) -> tuple[float, float]:
        """Put random keys in, and keep the watcher that knows them; return megabytes and seconds that it took."""
        await self.load()
        before, started = resident_mb(), time.perf_counter()
        crowded = AddressFilter(self._address_cache._filter.seed, room=count)
        for first in range(0, count, KEYS_AT_ONCE):
            drawn = os.urandom(KEY_BYTES * min(KEYS_AT_ONCE, count - first))
            crowded.update(drawn[place : place + KEY_BYTES] for place in range(0, len(drawn), KEY_BYTES))
        del drawn
        elapsed = time.perf_counter() - started
        # The addresses of the tables come into it with the next refresh, as after a snapshot.
        self._address_cache._filter, self._address_cache._from_xid = crowded, 0
        await self._address_cache.refresh()
        assert len(self._address_cache) >= count * 0.99
        return resident_mb() - before, elapsed

    def lookups(self) -> float:
        """Look up keys that nobody watches; return how many a second."""
        drawn = os.urandom(KEY_BYTES * LOOKUPS)
        keys = [drawn[place : place + KEY_BYTES] for place in range(0, len(drawn), KEY_BYTES)]
        watch = self._address_cache._filter
        started = time.perf_counter()
        for key in keys:
            key in watch  # noqa: B015  what is measured
        return LOOKUPS / (time.perf_counter() - started)

    def mistaken(self) -> float:
        """Return the share of keys that nobody watches, and that pass all the same."""
        watch = self._address_cache._filter
        return sum(os.urandom(KEY_BYTES) in watch for _ in range(LOOKUPS)) / LOOKUPS

    async def restart(self) -> tuple[float, float, float]:
        """Save the filter and load it again; return the seconds of both, and the megabytes on the disk."""
        with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
            cache = self._address_cache
            cache._path = Path(folder) / "live.filter"
            saved_s = await self._saved()
            again = AddressCache(self._db, self._family, "live")
            again._path = cache._path
            started = time.perf_counter()
            await again.refresh()
            loaded_s = time.perf_counter() - started
            assert again._saved_count == len(cache), "it was not loaded from the snapshot"
            return saved_s, loaded_s, cache._path.stat().st_size / 1e6

    async def _saved(self) -> float:
        """Save the filter; return the seconds of it. What is open elsewhere on a server that others use holds it up."""
        async with asyncio.timeout(SAVED_WITHIN_S):
            while True:
                started = time.perf_counter()
                if await self._address_cache.save():
                    return time.perf_counter() - started
                await asyncio.sleep(0.1)
