"""A merchant who has an authenticator."""

from __future__ import annotations

from typing import Any

from tests.support.authenticator import Authenticator, Phone, code_at
from tests.support.web import PASSWORD, Merchant

__all__ = ["HERE", "Authenticator", "Phone", "code_at", "enrol", "start"]

HERE = "/api/dashboard/two-factor"


async def start(merchant: Merchant, **changes: Any) -> Any:
    """Ask for a secret."""
    body = {"password": PASSWORD} | changes
    return await merchant.client.post(f"{HERE}/enrol", json=body, headers=merchant.bearer)


async def enrol(merchant: Merchant, clock: Any) -> tuple[Authenticator, list[str]]:
    """Turn two-factor authentication on; return the phone and the recovery codes. The next code is good at once."""
    response = await start(merchant)
    assert response.status_code == 200, response.text
    phone = Authenticator(response.json()["secret"], clock)
    response = await merchant.client.post(f"{HERE}/confirm", json={"totpCode": phone.code()}, headers=merchant.bearer)
    assert response.status_code == 200, response.text
    clock.advance(30)
    merchant.phone = phone
    return phone, response.json()["recoveryCodes"]
