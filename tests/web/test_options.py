"""OPTIONS is answered to whoever is let in at all, and is no attempt at anything."""

from __future__ import annotations

import pytest

from cambist.services.audit.entries import newest
from tests.support.operators import Officer


@pytest.mark.parametrize("is_active", [True, False])
async def test_whoever_is_let_in_may_ask_for_methods_and_has_tried_nothing(client, gateway, live_merchant, is_active):
    officer = await Officer(client).sign_in("support")
    if not is_active:
        async with gateway.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE projects SET is_active = false")
    async with gateway.db.autocommit() as conn:
        before = await newest(conn, limit=50)
    for path, headers, methods in (
        ("/api/merchant/wallet/payout", live_merchant.key, "OPTIONS, POST"),
        ("/api/payment", live_merchant.key, "GET, OPTIONS, POST"),
        ("/api/merchant/wallet/coins", live_merchant.key, "GET, OPTIONS, PUT"),
        ("/api/webhook/create", live_merchant.key, "OPTIONS, POST"),
        (f"/api/dashboard/projects/{live_merchant.project_id}/payments", live_merchant.bearer, "GET, OPTIONS, POST"),
        (f"/api/merchant/projects/{live_merchant.project_id}", live_merchant.bearer, "GET, OPTIONS, PATCH"),
        ("/api/merchant/projects", live_merchant.bearer, "GET, OPTIONS, POST"),
        ("/api/admin/plans", officer.bearer, "GET, OPTIONS, POST"),
        ("/api/public/chains", {}, "GET, OPTIONS"),
        ("/health/live", {}, "GET, HEAD, OPTIONS"),
    ):
        answer = await client.request("OPTIONS", path, headers=headers)
        assert (answer.status_code, answer.content) == (204, b""), path
        assert answer.headers["allow"] == methods, path
    async with gateway.db.autocommit() as conn:
        assert await newest(conn, limit=50) == before
