"""Trackers as rows, for tests of what happens behind the routes; and what was stored of their movements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from cambist.db.engine import Database
from cambist.services.trackers import history
from cambist.services.webhooks.secrets import TRACKER_FIELD
from tests.support.webhooks import signing_secrets

SECRET = "7c" * 32


class Watchers:
    """Makes trackers of one project, and reads what became of movements."""

    def __init__(self, db: Database, project_pk: int, *, mode: str = "live", scope: int = 0, family: str) -> None:
        self.db, self.project_pk, self.mode, self.scope, self.family = db, project_pk, mode, scope, family
        self.made = 0

    async def make(
        self,
        addresses: Sequence[str],
        *,
        chain: str = "memory",
        start_block: int = 0,
        past: bool = False,
        url: str = "https://shop.example/moved",
    ) -> int:
        """Insert a tracker of these addresses, and return its primary key. Its public id is ``trk_<key>``.

        With ``past`` it is one that asked for its start block.
        """
        self.made += 1
        name = f"{self.project_pk}_{self.made}"
        secret = signing_secrets().seal(f"trk_{name}", SECRET, field=TRACKER_FIELD)
        async with self.db.transaction() as conn:
            made = await conn.exec_driver_sql(
                "INSERT INTO trackers (webhook_id, project_pk, mode, chain, scope, url, name, start_block,"
                " max_addresses, token_hash, token_encrypted, secret_encrypted, reads_past)"
                " VALUES ('trk_' || $1, $2, $3, $4, $5, $6, 'Mine', $7, 1000, convert_to($1, 'UTF8'), '', $8, $9)"
                " RETURNING id",
                (name, self.project_pk, self.mode, chain, self.scope, url, start_block, secret, past),
            )
            tracker_pk: int = made.scalar_one()
        await self.add(tracker_pk, addresses)
        return tracker_pk

    async def add(self, tracker_pk: int, addresses: Sequence[str], label: str | None = None) -> None:
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO tracked_addresses (mode, family, address) SELECT $1, $2, unnest($3::text[])"
                " ON CONFLICT DO NOTHING",
                (self.mode, self.family, list(addresses)),
            )
            await conn.exec_driver_sql(
                "INSERT INTO tracker_addresses (tracker_pk, chain, scope, address, label)"
                " SELECT id, chain, scope, unnest($2::text[]), $3 FROM trackers WHERE id = $1",
                (tracker_pk, list(addresses), label),
            )
            await history.ask(conn, tracker_pk)

    async def change(self, tracker_pk: int, **columns: object) -> None:
        async with self.db.transaction() as conn:
            for name, value in columns.items():
                statement = f"UPDATE trackers SET {name} = $1 WHERE id = $2"  # noqa: S608  the test's own column
                await conn.exec_driver_sql(statement, (value, tracker_pk))

    async def remove(self, tracker_pk: int, address: str) -> None:
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(
                "DELETE FROM tracker_addresses WHERE tracker_pk = $1 AND address = $2", (tracker_pk, address)
            )

    async def rows(self, statement: str, *arguments: object) -> list[Any]:
        async with self.db.transaction() as conn:
            return list(await conn.exec_driver_sql(statement, arguments))

    async def stages(self) -> list[tuple[str, int, str]]:
        """Return what became of movements, in order: transaction, incarnation and stage."""
        found = await self.rows(
            "SELECT m.tx_id, m.incarnation, s.stage FROM movement_stages s JOIN movements m ON m.id = s.movement_pk"
            " ORDER BY s.id"
        )
        return [tuple(row) for row in found]

    async def told(self, tracker_pk: int) -> list[dict[str, Any]]:
        """Return the bodies that a tracker is sent, in order."""
        found = await self.rows("SELECT body FROM webhook_deliveries WHERE tracker_pk = $1 ORDER BY id", tracker_pk)
        return [msgspec.json.decode(row.body) for row in found]
