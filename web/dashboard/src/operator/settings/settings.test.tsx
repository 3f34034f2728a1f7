import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, refused, showOperator } from "../../testing/render";

import { SettingsPage } from "./SettingsPage";

const SETTINGS = {
  success: true,
  version: 5,
  payoutEnabled: true,
  payoutSwapEnabled: false,
  payoutMinimumFees: 1,
  limits: {},
  targets: {},
  nativeGasMax: {},
  collection: { enabled: true, minValueUsd: "5", maxFeeShareBps: 500, maxAgeHours: 168, batched: false },
  exchanges: {
    swapEnabled: true,
    bridgeEnabled: true,
    swapFeeBps: 0,
    bridgeFeeBps: 0,
    autoConvertMarkupBps: 0,
    defaultSlippageBps: 100,
    priceGuardBps: 300,
    leastRates: {},
    providers: {},
    validMinutes: 60,
    autoConvertMinUsd: "10",
  },
  cpt: {},
  derivedMinimums: {},
};

it("a setting is changed by the version that was seen, and whoever was faster is told of", async () => {
  const bodies: unknown[] = [];
  let now = SETTINGS;
  await showOperator(SettingsPage, {
    path: "settings",
    permissions: ["settings.change"],
    answers: {
      "GET /api/admin/settings": () => json(now),
      "PUT /api/admin/settings": async (request) => {
        bodies.push(await request.json());
        if (bodies.length > 1) return json(now);
        now = {
          ...SETTINGS,
          version: 6,
          payoutMinimumFees: 3,
          exchanges: { ...SETTINGS.exchanges, priceGuardBps: 250 },
          derivedMinimums: { "memory/USDX": {} },
        };
        return refused(409, "VERSION_MISMATCH");
      },
    },
  });
  const row = await screen.findByRole("row", { name: /payoutMinimumFees/ });
  fireEvent.click(within(row).getByRole("button", { name: "Change" }));
  const dialog = await screen.findByRole("dialog");
  const value = within(dialog).getByLabelText<HTMLInputElement>(/^New value/);
  fireEvent.change(value, { target: { value: "2" } });
  fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
  const different = await within(dialog).findByRole("region", { name: "What is different by now" });
  expect(within(different).getByText("1 \u2192 3")).toBeTruthy();
  expect(within(different).getByText("exchanges.priceGuardBps")).toBeTruthy();
  expect(within(different).queryByText(/derivedMinimums/)).toBeNull();
  expect(value.value).toBe("2");
  fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
  await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  expect(bodies).toEqual([
    { version: 5, payoutMinimumFees: 2 },
    { version: 6, payoutMinimumFees: 2 },
  ]);
});
