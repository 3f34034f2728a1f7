import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, one, refused, showOperator, toldIn } from "../../testing/render";

import { SettingsPage } from "./SettingsPage";

const SETTINGS = {
  success: true,
  version: 5,
  payoutEnabled: true,
  payoutSwapEnabled: false,
  payoutMinimumFees: 1,
  limits: {},
  allowedAddresses: {},
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
  cpt: {
    initialAllowance: 1000000,
    floor: -100000,
    weights: { chains: { default: { payment: 10 } }, tracker: 1, apiMethod: 0, webhookDelivery: 1 },
    tiers: [],
    packs: [],
  },
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
          derivedMinimums: { "memory/USDX": { minimum: "1.5", fee: "0.001", derivedAt: "2026-01-31T12:00:00.000Z" } },
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
  expect(toldIn(different)).toEqual([
    ["Smallest payout, in fees", "1 \u2192 3"],
    ["Largest loss of value", "3% \u2192 2.5%"],
  ]);
  expect(value.value).toBe("2");
  fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
  await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  expect(bodies).toEqual([
    { version: 5, payoutMinimumFees: 2 },
    { version: 6, payoutMinimumFees: 2 },
  ]);
});

const TOKENS = {
  ...one,
  total: 2,
  tokens: [
    { chain: "memory", symbol: "USDX" },
    { chain: "memory", symbol: "MEM" },
  ],
};

it("shares are shown and typed in percent, and sent in hundredths of one", async () => {
  const bodies: unknown[] = [];
  await showOperator(SettingsPage, {
    path: "settings",
    permissions: ["settings.change"],
    answers: {
      "GET /api/admin/settings": () => json(SETTINGS),
      "PUT /api/admin/settings": async (request) => {
        bodies.push(await request.json());
        return json(SETTINGS);
      },
    },
  });
  const row = await screen.findByRole("row", { name: /priceGuardBps/ });
  expect(row.textContent).toContain("3%");
  expect((await screen.findByRole("row", { name: /maxAgeHours/ })).textContent).toContain("168 hours");
  for (const typed of ["2,5", "0"]) {
    fireEvent.click(within(row).getByRole("button", { name: "Change" }));
    const dialog = await screen.findByRole("dialog", { name: "Largest loss of value" });
    const value = within(dialog).getByLabelText<HTMLInputElement>(/^New value, in the place of 3%/);
    expect(value.value).toBe("3");
    fireEvent.change(value, { target: { value: typed } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
  }
  expect(bodies).toEqual([
    { version: 5, exchanges: { priceGuardBps: 250 } },
    { version: 5, exchanges: { priceGuardBps: 0 } },
  ]);
});

const CHAINS = { chains: [{ chain: "memory", name: "Memory" }] };

async function open(answer: (body: unknown) => Response) {
  await showOperator(SettingsPage, {
    path: "settings",
    permissions: ["settings.change", "chains.read"],
    answers: {
      "GET /api/admin/settings": { ...SETTINGS, limits: { "memory/MEM": { perDay: "9" } } },
      "GET /api/admin/tokens": TOKENS,
      "GET /api/admin/chains": CHAINS,
      "PUT /api/admin/settings": async (request) => answer(await request.json()),
    },
  });
}

async function edit(name: string): Promise<HTMLElement> {
  const part = await screen.findByRole("region", { name });
  fireEvent.click(within(part).getByRole("button", { name: "Change" }));
  return part;
}

async function choose(row: HTMLElement, label: RegExp, option: string): Promise<void> {
  const field = within(row).getByRole("combobox", { name: label });
  fireEvent.click(field);
  // Those of other rows are there, too.
  await expect.poll(() => optionOf(field, option)).toBeDefined();
  const found = optionOf(field, option);
  if (found !== undefined) fireEvent.click(found);
}

function optionOf(field: HTMLElement, option: string): Element | undefined {
  const offered = document.getElementById(field.getAttribute("aria-controls") ?? "")?.querySelectorAll("[role=option]");
  return [...(offered ?? [])].find((one) => one.textContent === option);
}

function type(row: HTMLElement, label: RegExp, value: string): void {
  fireEvent.change(within(row).getByRole("textbox", { name: label }), { target: { value } });
}

it("limits are rows: one more is added, what is wrong stands in its field, and all are sent together", async () => {
  const bodies: unknown[] = [];
  await open((body) => {
    bodies.push(body);
    if (bodies.length > 1) return json({ ...SETTINGS, version: 6 });
    const details = [{ field: "limits.memory/USDX.perDay", message: "has more than 6 decimals" }];
    return json({ success: false, error: "No.", code: "VALIDATION_ERROR", details }, 400);
  });
  const part = await edit("Limits");
  expect(within(part).getByText(/the minimum; left empty, the one made of fees holds/)).toBeTruthy();
  fireEvent.click(within(part).getByRole("button", { name: "Add a row" }));
  const row = within(part).getByRole("group", { name: "Row 2" });
  await choose(row, /^Coin/, "memory/USDX");
  type(row, /^In 24 hours/, "250.1234567");
  fireEvent.click(within(part).getByRole("button", { name: "Save" }));
  await within(row).findByText("has more than 6 decimals");
  type(row, /^In 24 hours/, "250");
  type(row, /^Minimum/, "5");
  fireEvent.click(within(part).getByRole("button", { name: "Save" }));
  await within(part).findByRole("button", { name: "Change" });
  const kept = { "memory/MEM": { perDay: "9" } };
  expect(bodies).toEqual([
    { version: 5, limits: { ...kept, "memory/USDX": { perDay: "250.1234567" } } },
    { version: 5, limits: { ...kept, "memory/USDX": { perDay: "250", minimum: "5" } } },
  ]);
});

it("a row that is there already is said so, and nothing is sent until one of them is gone", async () => {
  const bodies: unknown[] = [];
  await open((body) => {
    bodies.push(body);
    return json(SETTINGS);
  });
  const part = await edit("Limits");
  fireEvent.click(within(part).getByRole("button", { name: "Add a row" }));
  const row = within(part).getByRole("group", { name: "Row 2" });
  await choose(row, /^Coin/, "memory/MEM");
  await within(row).findByText("This one is there already");
  const save = within(part).getByRole<HTMLButtonElement>("button", { name: "Save" });
  expect(save.disabled).toBe(true);
  fireEvent.click(within(row).getByRole("button", { name: "Remove" }));
  expect(save.disabled).toBe(false);
  fireEvent.click(save);
  await within(part).findByRole("button", { name: "Change" });
  expect(bodies).toEqual([{ version: 5, limits: { "memory/MEM": { perDay: "9" } } }]);
});

it("addresses of one chain are sent together, and each has its own fault", async () => {
  const bodies: unknown[] = [];
  await open((body) => {
    bodies.push(body);
    const details = [{ field: "allowedAddresses.memory[1]", message: "is no address of this chain" }];
    return json({ success: false, error: "No.", code: "VALIDATION_ERROR", details }, 400);
  });
  const part = await edit("Addresses that may be paid");
  for (const [number, address] of ["m1", "nonsense"].entries()) {
    fireEvent.click(within(part).getByRole("button", { name: "Add a row" }));
    const row = within(part).getByRole("group", { name: `Row ${String(number + 1)}` });
    await choose(row, /^Chain/, "memory");
    type(row, /^Address/, address);
  }
  fireEvent.click(within(part).getByRole("button", { name: "Save" }));
  const wrong = within(part).getByRole("group", { name: "Row 2" });
  await within(wrong).findByText("is no address of this chain");
  expect(within(within(part).getByRole("group", { name: "Row 1" })).queryByText(/no address/)).toBeNull();
  expect(bodies).toEqual([{ version: 5, allowedAddresses: { memory: ["m1", "nonsense"] } }]);
});

it("whoever was faster keeps what they added, and one's own changes stand", async () => {
  const bodies: { readonly limits: object }[] = [];
  let now = { ...SETTINGS, limits: { "memory/MEM": { perDay: "9" } } as object };
  await showOperator(SettingsPage, {
    path: "settings",
    permissions: ["settings.change"],
    answers: {
      "GET /api/admin/settings": () => json(now),
      "PUT /api/admin/settings": async (request) => {
        bodies.push((await request.json()) as (typeof bodies)[number]);
        if (bodies.length > 1) return json(now);
        now = { ...now, version: 6, limits: { "memory/MEM": { perDay: "9" }, "memory/USDX": { perDay: "50" } } };
        return refused(409, "VERSION_MISMATCH");
      },
    },
  });
  const part = await edit("Limits");
  type(within(part).getByRole("group", { name: "Row 1" }), /^In 24 hours/, "8");
  fireEvent.click(within(part).getByRole("button", { name: "Save" }));
  const added = await within(part).findByRole("group", { name: "Row 2" });
  expect(within(added).getByDisplayValue("50")).toBeTruthy();
  expect(toldIn(within(part).getByRole("region", { name: "What is different by now" }))).toEqual([
    ["Limits \u00b7 memory/USDX", "\u2013 \u2192 In 24 hours 50"],
  ]);
  fireEvent.click(within(part).getByRole("button", { name: "Save" }));
  await within(part).findByRole("button", { name: "Change" });
  expect(bodies).toEqual([
    { version: 5, limits: { "memory/MEM": { perDay: "8" } } },
    { version: 6, limits: { "memory/MEM": { perDay: "8" }, "memory/USDX": { perDay: "50" } } },
  ]);
});

it("a chain from which nothing may leave stays so, and it is said which chains are opened", async () => {
  const bodies: unknown[] = [];
  await showOperator(SettingsPage, {
    path: "settings",
    permissions: ["settings.change"],
    answers: {
      "GET /api/admin/settings": { ...SETTINGS, allowedAddresses: { memory: [], tron: ["T1"] } },
      "PUT /api/admin/settings": async (request) => {
        bodies.push(await request.json());
        return json(SETTINGS);
      },
    },
  });
  const region = await screen.findByRole("region", { name: "Addresses that may be paid" });
  expect(within(region).getByRole("row", { name: /memory.*Nothing may leave/ })).toBeTruthy();
  const part = await edit("Addresses that may be paid");
  const remove = (number: number) => {
    const row = within(part).getByRole("group", { name: `Row ${String(number)}` });
    fireEvent.click(within(row).getByRole("button", { name: "Remove" }));
  };
  expect(within(part).queryByRole("alert")).toBeNull();
  remove(2);
  expect(within(part).getByRole("alert").textContent).toBe(
    "Once this is saved, any address may be paid again on tron.",
  );
  fireEvent.click(within(part).getByRole("button", { name: "Save" }));
  await within(part).findByRole("button", { name: "Change" });
  expect(bodies).toEqual([{ version: 5, allowedAddresses: { memory: [] } }]);
});

it("what is below zero has a minus, as amounts have, and no hyphen", async () => {
  await showOperator(SettingsPage, { path: "settings", answers: { "GET /api/admin/settings": SETTINGS } });
  expect(await screen.findByText("\u2212100,000")).toBeTruthy();
});
