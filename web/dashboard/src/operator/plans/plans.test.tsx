import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { chooseLanguage } from "../../i18n";
import { chooseIn } from "../../testing/menus";
import { json, refused, showOperator, toldIn, type Answers } from "../../testing/render";

import { BLANK, written } from "./PlanForm";
import { PlansPage } from "./PlansPage";
import type { Plan } from "./queries";

const LIST = "GET /api/admin/plans";
const PLAN: Plan = {
  planId: "pln_1",
  name: "Growth",
  hasTracker: true,
  chains: ["polygon"],
  maxWebhooks: 10,
  maxAddresses: 1000,
  requestsPerMinute: null,
  cptPerMonth: 500_000,
  priceUsd: "49",
  isDefault: false,
  isPublic: true,
  archivedAt: null,
  createdAt: "2026-01-01T12:00:00.000Z",
  version: 3,
  merchants: 2,
};
const defaultPlan = { ...PLAN, planId: "", name: "Built in", chains: null };
const answers = (...plans: Plan[]): Answers => ({
  [LIST]: { success: true, page: 1, limit: 100, total: plans.length, defaultPlan, plans },
  "GET /api/admin/chains": { chains: [] },
});
const permissions = ["plans.read", "plans.change"] as const;

afterEach(async () => {
  vi.restoreAllMocks();
  await chooseLanguage("en");
});

describe("the plans", () => {
  it("lead from how many merchants have one to these", async () => {
    const few = [...permissions, "merchants.read"] as const;
    const other = { ...PLAN, planId: "pln_2", name: "Unused", merchants: 0 };
    await showOperator(PlansPage, { path: "plans", answers: answers(PLAN, other), permissions: few });
    const row = await screen.findByRole("row", { name: /Growth/ });
    expect(within(row).getByRole("link", { name: "2" }).getAttribute("href")).toBe("/merchants?plan=pln_1");
    expect(within(screen.getByRole("row", { name: /Unused/ })).queryByRole("link")).toBeNull();
  });

  it("are shown beside what everybody else has, and offer nothing to whoever may only read", async () => {
    await showOperator(PlansPage, { path: "plans", answers: answers(PLAN), permissions: ["plans.read"] });
    const row = await screen.findByRole("row", { name: /Growth/ });
    for (const text of ["500,000", "$49.00"]) expect(within(row).getByText(text)).toBeTruthy();
    expect(screen.getByText("Built in")).toBeTruthy();
    expect(screen.getByText("Every chain")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Make a plan" })).toBeNull();
    for (const name of ["Change", "Archive"]) expect(within(row).queryByRole("button", { name })).toBeNull();
  });

  it("say what a price is taken for whose dot may be meant to group thousands", async () => {
    await chooseLanguage("de");
    await showOperator(PlansPage, { path: "plans", answers: answers({ ...PLAN, priceUsd: "1.000" }), permissions });
    fireEvent.click(within(await screen.findByRole("row", { name: /Growth/ })).getByRole("button", { name: "Ändern" }));
    const dialog = within(await screen.findByRole("dialog"));
    expect(dialog.getByText(/Das ist 1, nicht 1\.000\./, { selector: "strong" })).toBeTruthy();
  });

  it("say where there are none", async () => {
    await showOperator(PlansPage, { path: "plans", answers: answers(), permissions });
    expect(await screen.findByText("There is only the built-in plan")).toBeTruthy();
  });

  it("are made with what was written, and a refusal stays in the dialog", async () => {
    const bodies: Record<string, unknown>[] = [];
    await showOperator(PlansPage, {
      path: "plans",
      permissions,
      answers: {
        ...answers(),
        "POST /api/admin/plans": async (request) => {
          bodies.push((await request.json()) as Record<string, unknown>);
          return bodies.length === 1 ? refused(409, "PLAN_NAME_TAKEN") : json({ success: true, plan: PLAN }, 201);
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Make a plan" }));
    const dialog = await screen.findByRole("dialog", { name: "Make a plan" });
    fireEvent.change(within(dialog).getByLabelText(/^Name/), { target: { value: " Growth " } });
    fireEvent.change(within(dialog).getByLabelText(/^Credits a month/), { target: { value: "500000" } });
    const act = within(dialog).getByRole("button", { name: "Make a plan" });
    fireEvent.click(act);
    expect(await within(dialog).findByText("PLAN_NAME_TAKEN")).toBeTruthy();
    fireEvent.click(act);
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    expect(bodies[1]).toEqual({
      name: "Growth",
      hasTracker: true,
      maxWebhooks: 10,
      maxAddresses: 1000,
      chains: null,
      requestsPerMinute: null,
      cptPerMonth: 500_000,
      priceUsd: null,
      isPublic: true,
    });
  });

  it("are changed in what is different alone, made the default, archived and brought back", async () => {
    const bodies: unknown[] = [];
    const archived = { ...PLAN, planId: "pln_2", name: "Old", archivedAt: "2026-01-02T12:00:00.000Z" };
    const patched = async (request: Request) => {
      bodies.push(await request.json());
      return json({ success: true, plan: PLAN });
    };
    await showOperator(PlansPage, {
      path: "plans",
      permissions,
      answers: {
        ...answers(PLAN, archived),
        "PATCH /api/admin/plans/pln_1": patched,
        "PATCH /api/admin/plans/pln_2": patched,
      },
    });
    const act = async (called: RegExp, name: string, fill?: (dialog: HTMLElement) => void) => {
      const row = await screen.findByRole("row", { name: called });
      if (name === "Change") fireEvent.click(within(row).getByRole("button", { name }));
      else await chooseIn(row, name);
      const dialog = await screen.findByRole("dialog");
      fill?.(dialog);
      fireEvent.click(within(dialog).getByRole("button", { name }));
      await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    };
    await act(/Growth/, "Change", (dialog) => {
      expect(within(dialog).getByText(/the 2 merchants/)).toBeTruthy();
      fireEvent.change(within(dialog).getByLabelText(/^Active trackers/), { target: { value: "25" } });
    });
    await act(/Growth/, "Make it the default");
    await act(/Growth/, "Archive");
    await act(/Old/, "Bring back");
    const version = 3;
    expect(bodies).toEqual([
      { version, maxWebhooks: 25 },
      { version, isDefault: true },
      { version, archived: true },
      { version, archived: false },
    ]);
  });

  it("are changed without undoing what somebody else changes while the dialog is open", async () => {
    const bodies: unknown[] = [];
    let now = PLAN;
    await showOperator(PlansPage, {
      path: "plans",
      permissions,
      answers: {
        ...answers(),
        [LIST]: () => json(answers(now)[LIST] as object),
        "PATCH /api/admin/plans/pln_1": async (request) => {
          bodies.push(await request.json());
          return json({ success: true, plan: PLAN });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Change" }));
    const dialog = await screen.findByRole("dialog");
    now = { ...PLAN, maxAddresses: 5000 };
    const later = Date.now() + 60_000;
    vi.spyOn(Date, "now").mockReturnValue(later);
    globalThis.dispatchEvent(new Event("visibilitychange"));
    expect(await screen.findByText("5,000")).toBeTruthy();
    fireEvent.change(within(dialog).getByLabelText(/^Active trackers/), { target: { value: "25" } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    expect(bodies).toEqual([{ version: 3, maxWebhooks: 25 }]);
  });

  it("tell what somebody else was faster to change, and keep what was typed", async () => {
    const bodies: unknown[] = [];
    let now = PLAN;
    await showOperator(PlansPage, {
      path: "plans",
      permissions,
      answers: {
        ...answers(),
        [LIST]: () => json(answers(now)[LIST] as object),
        "PATCH /api/admin/plans/pln_1": async (request) => {
          bodies.push(await request.json());
          if (bodies.length > 1) return json({ success: true, plan: PLAN });
          now = { ...PLAN, version: 4, maxAddresses: 5000, chains: ["polygon", "tron"] };
          return refused(409, "VERSION_MISMATCH");
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Change" }));
    const dialog = await screen.findByRole("dialog");
    const trackers = within(dialog).getByLabelText<HTMLInputElement>(/^Active trackers/);
    fireEvent.change(trackers, { target: { value: "25" } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
    const different = await within(dialog).findByRole("region", { name: "What is different by now" });
    expect(toldIn(different)).toEqual([
      ["Chains of trackers", "polygon \u2192 polygon, tron"],
      ["Addresses of a tracker", "1,000 \u2192 5,000"],
    ]);
    expect(within(dialog).getByText(/Somebody else has changed this/)).toBeTruthy();
    expect(trackers.value).toBe("25");
    expect(within(dialog).getByLabelText<HTMLInputElement>(/^Addresses of a tracker/).value).toBe("5000");
    fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    expect(bodies).toEqual([
      { version: 3, maxWebhooks: 25 },
      { version: 4, maxWebhooks: 25 },
    ]);
  });

  it("say whom a change of the default one concerns", async () => {
    const answered = answers({ ...PLAN, isDefault: true, merchants: 0 });
    await showOperator(PlansPage, { path: "plans", answers: answered, permissions });
    fireEvent.click(await screen.findByRole("button", { name: "Change" }));
    const dialog = await screen.findByRole("dialog");
    expect(within(dialog).getByText(/all merchants who were given no plan/)).toBeTruthy();
    expect(within(dialog).queryByText(/0 merchants/)).toBeNull();
  });

  it("are not changed while a number that has to be there is left out", async () => {
    const sent = await showOperator(PlansPage, { path: "plans", answers: answers(PLAN), permissions });
    fireEvent.click(await screen.findByRole("button", { name: "Change" }));
    const dialog = await screen.findByRole("dialog");
    const trackers = within(dialog).getByLabelText<HTMLInputElement>(/^Active trackers/);
    fireEvent.change(trackers, { target: { value: "" } });
    expect(trackers.value).toBe("");
    fireEvent.click(within(dialog).getByRole("button", { name: "Change" }));
    expect(trackers.matches(":invalid")).toBe(true);
    expect(sent.some((request) => request.method === "PATCH")).toBe(false);
    expect(screen.getByRole("dialog")).toBe(dialog);
  });
});

it.each([
  ["12,50", "12.50"],
  ["12.5", "12.5"],
  [null, null],
])("a plan's price is taken as many write it: %s", (priceUsd, sent) => {
  expect(written({ ...BLANK, priceUsd }).priceUsd).toBe(sent);
});
