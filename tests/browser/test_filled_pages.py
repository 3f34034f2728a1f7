"""Every page of both apps with something on it, as axe sees it, in light and in dark."""

from __future__ import annotations

import os

import pytest

from cambist_web.dashboard.files import BUILT
from tests.browser.described import DescribedGateway, described_page, go
from tests.browser.test_dashboard import axe as axe  # noqa: PLC0414  a fixture of all tests of dashboards
from tests.browser.test_dashboard import violations

IN_CI = os.environ.get("CAMBIST_TEST_CI") == "1"

pytestmark = pytest.mark.skipif(
    not ((BUILT / "dashboard.html").exists() or IN_CI), reason="the dashboards are not built: make dashboard"
)


@pytest.mark.parametrize("app", ["merchant", "operator"])
async def test_axe_finds_nothing_wrong_with_any_filled_page(chromium, app, axe):
    gateway = DescribedGateway(app, rows=3)
    wrong = []
    async with described_page(chromium, gateway, viewport={"width": 1280, "height": 860}) as page:
        for number, address in enumerate(gateway.addresses()):
            await go(page, address)
            # What stands around every page is looked at once.
            part = "main" if number else ""
            failed = await page.get_by_role("alert").all_inner_texts()
            wrong += [f"{address}: {one}" for one in [*failed, *await violations(page, axe, part=part)]]
    assert not wrong, "\n".join(wrong)
