import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import i18next from "i18next";
import { expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { DESCRIBED } from "../../testing/described";
import { json, nothing, one, refused, showOperator } from "../../testing/render";
import { ACTIONS } from "../../ui/actions";

import { AuditPage } from "./AuditPage";

const LIST = "GET /api/admin/audit";
const MERCHANTS = "GET /api/admin/merchants";
const known = new Set(["payout.asked", "payout.failed"]);

/** Return what each request for the log has asked for, besides its page. */
function asked(sent: readonly Request[]): readonly Record<string, string>[] {
  return sent
    .map(({ url }) => new URL(url))
    .filter(({ pathname }) => pathname === "/api/admin/audit")
    .map(({ searchParams }) => {
      const { limit, page, ...filters } = Object.fromEntries(searchParams);
      expect([limit, page]).toEqual(["25", "1"]);
      return filters;
    });
}

it("an action and a merchant are looked for letter by letter, and asked for once they are chosen", async () => {
  const sent = await showOperator(AuditPage, {
    path: "audit",
    answers: {
      // As the API does: part of an action's name, or of a merchant's, is an error.
      [LIST]: ({ url }) => {
        const { action, merchant } = Object.fromEntries(new URL(url).searchParams);
        const isWrong =
          (action !== undefined && !known.has(action)) || (merchant !== undefined && merchant !== "mrc_7");
        return isWrong ? refused(400, "VALIDATION_ERROR") : json({ ...nothing, entries: [], verification: null });
      },
      [MERCHANTS]: {
        ...nothing,
        total: 1,
        merchants: [{ merchantId: "mrc_7", name: "Nordlicht", email: "a@b.example" }],
      },
    },
  });
  await screen.findByText("Nothing was done yet");
  for (const [field, typed, chosen] of [
    ["What", "payout ask", "Payout asked for"],
    ["Merchant", "nord", /Nordlicht/],
  ] as const) {
    const input = screen.getByRole("combobox", { name: field });
    fireEvent.click(input);
    for (const end of typed.split("").keys()) {
      fireEvent.change(input, { target: { value: typed.slice(0, end + 1) } });
    }
    fireEvent.click(await screen.findByRole("option", { name: chosen, hidden: true }));
  }
  await waitFor(() => {
    expect(asked(sent)).toEqual([{}, { action: "payout.asked" }, { action: "payout.asked", merchant: "mrc_7" }]);
  });
  expect(screen.queryByRole("alert")).toBeNull();
  expect(await screen.findByText("None is like that")).toBeTruthy();
});

it("days are asked for as the moments between which they are", async () => {
  const sent = await showOperator(AuditPage, {
    path: "audit",
    at: "audit?from=2026-01-01&until=2026-01-31",
    answers: { [LIST]: { ...nothing, entries: [], verification: null } },
  });
  await screen.findByText("None is like that");
  const [from, to] = [new Date(2026, 0, 1).toISOString(), new Date(2026, 1, 1).toISOString()];
  expect(asked(sent)).toEqual([{ from, to }]);
});

it("every action is named in the reader's language, and the log's own name stands below", async () => {
  const entry = {
    entryId: "aud_1",
    createdAt: "2026-01-01T12:00:00.000Z",
    action: "price_source.set_aside",
    count: 1,
    actorKind: "operator",
    actor: "opr_1",
    actorName: "Olga",
    address: null,
    merchantId: null,
    merchantName: null,
    projectId: null,
    projectName: null,
    subject: null,
    details: {},
  };
  const answers = { [LIST]: { ...one, entries: [entry], verification: null } };
  await chooseLanguage("de");
  try {
    await showOperator(AuditPage, { path: "audit", answers });
    const row = await screen.findByRole("row", { name: /Preisquelle ausgesetzt/ });
    expect(within(row).getByText("price_source.set_aside").tagName).toBe("CODE");
    const { action } = i18next.getResourceBundle("de", "api") as { readonly action: Record<string, object> };
    const named = Object.entries(action).flatMap(([of, acts]) => Object.keys(acts).map((act) => `${of}.${act}`));
    expect(named.sort()).toEqual([...ACTIONS].sort());
  } finally {
    await chooseLanguage("en");
  }
});

it("an entry leads to what it is about, where that has a page which the reader may see", async () => {
  const { entries } = DESCRIBED.operator.example("/api/admin/audit") as { readonly entries: readonly [object] };
  const subjects = ["po_1", "mer_1", "job_1", "ses_1", null];
  await showOperator(AuditPage, {
    path: "audit",
    permissions: ["audit.read", "records.read", "jobs.read"],
    answers: {
      [LIST]: {
        ...nothing,
        total: subjects.length,
        entries: subjects.map((subject, number) => ({
          ...entries[0],
          entryId: `aud_${String(number)}`,
          merchantId: null,
          subject,
        })),
        verification: null,
      },
      [MERCHANTS]: { ...nothing, merchants: [] },
    },
  });
  const table = await screen.findByRole("table", { name: "Audit log" });
  expect(
    within(table)
      .getAllByRole("link")
      .map((link) => link.getAttribute("href")),
  ).toEqual(["/payouts/po_1", "/jobs/job_1"]);
  expect(within(table).getByText("mer_1").closest("button")).toBeTruthy();
});
