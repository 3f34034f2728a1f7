import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { nothing, one, show } from "../../testing/render";
import type { Schemas } from "../queries";

import { AuditPage } from "./AuditPage";

const LIST = "GET /api/dashboard/audit";
const ENTRY: Schemas["OwnTrailEntry"] = {
  createdAt: "2026-01-01T12:00:00.000Z",
  action: "payout.asked",
  actorKind: "merchant",
  actor: "mem_1",
  actorName: "Ada",
  address: "203.0.113.7",
  projectId: "prj_1",
  projectName: "Nordlicht",
  subject: "po_1",
  details: { amount: "25", approved: true },
  count: 3,
};

describe("the audit log of a merchant", () => {
  it("says who did what, from where, how often, and what else is told", async () => {
    await show(AuditPage, { path: "audit", answers: { [LIST]: { ...one, entries: [ENTRY] } } });
    const row = await screen.findByRole("row", { name: /payout\.asked/ });
    for (const text of [
      "Payout asked for",
      "Ada",
      /^Member ·/,
      /203\.0\.113\.7/,
      "Nordlicht",
      "po_1",
      "× 3",
      "25",
      "true",
    ]) {
      expect(within(row).getByText(text)).toBeTruthy();
    }
  });

  it("leads to what was done something about, in its own project, where that has a page", async () => {
    const invited = { ...ENTRY, action: "member.invited", subject: "mem_2" };
    const ofNone = { ...ENTRY, action: "payout.failed", projectId: null };
    const endpoint = { ...ENTRY, action: "webhook_endpoint.added", subject: "whe_1" };
    const entries = [ENTRY, invited, ofNone, endpoint];
    await show(AuditPage, { path: "audit", answers: { [LIST]: { ...one, entries } } });
    const link = within(await screen.findByRole("row", { name: /payout\.asked/ })).getByRole("link");
    expect(link.getAttribute("href")).toBe("/prj_1/payouts/po_1");
    const ofEndpoint = within(screen.getByRole("row", { name: /webhook_endpoint\.added/ })).getByRole("link");
    expect(ofEndpoint.getAttribute("href")).toBe("/prj_1/webhooks/endpoints/whe_1");
    for (const name of [/member\.invited/, /payout\.failed/]) {
      expect(within(screen.getByRole("row", { name })).queryByRole("link")).toBeNull();
    }
  });

  it("asks for what stands in the address", async () => {
    const at = "audit?action=payout.asked&actorKind=key&page=2";
    const [sent] = await show(AuditPage, { path: "audit", at, answers: { [LIST]: { ...nothing, entries: [] } } });
    const asked = new URL(sent?.url ?? "").searchParams;
    expect([asked.get("action"), asked.get("actorKind"), asked.get("page")]).toEqual(["payout.asked", "key", "2"]);
    expect(await screen.findByText("Nothing is like that")).toBeTruthy();
  });

  it("is not asked for by whoever may not read it", async () => {
    const sent = await show(AuditPage, { path: "audit", answers: {}, permissions: ["read", "payments"] });
    expect(screen.getByText("Your role does not permit this")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Download CSV" })).toBeNull();
    expect(sent).toEqual([]);
  });

  it("says where nothing was done yet", async () => {
    await show(AuditPage, { path: "audit", answers: { [LIST]: { ...nothing, entries: [] } } });
    expect(await screen.findByText("Nothing was done yet")).toBeTruthy();
  });
});
