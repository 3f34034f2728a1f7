import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, showOperator } from "../../testing/render";

import { OverviewPage } from "./OverviewPage";

const OVERVIEW = "GET /api/admin/overview";
const payments = { made: 0, open: 0, paid: 0, conversionPercent: null, states: {} };
const answerOf = (swapped: number, sent: number) => ({
  currency: "usd",
  step: "day",
  attention: [],
  turnover: { payments, deposits: 0, fiat: "0.00", unpriced: 0, coins: [], series: [] },
  exchangeFees: { coins: [], fiat: "1.00", unpriced: swapped },
  networkFees: { coins: [], fiat: "2.00", unpriced: sent },
  held: { fiat: "0.00", unpriced: 0, coins: [] },
});
const UNPRICED = /without a known price/;

describe("the overview of operators", () => {
  it("leads from what needs attention to where somebody does something about it", async () => {
    const one = (code: string) => ({ code, message: `Something about ${code}.`, count: 2, since: null });
    const attention = [one("GAS_LOW"), one("SOMETHING_NEW")];
    await showOperator(OverviewPage, {
      path: "overview",
      answers: { [OVERVIEW]: { ...answerOf(0, 0), attention } },
      permissions: ["overview.read", "money.read"],
    });
    const list = await screen.findByRole("list", { name: "What needs attention" });
    expect(within(list).getAllByRole("listitem")).toHaveLength(2);
    const links = within(list).getAllByRole("link");
    expect(links.map((link) => [link.textContent, link.getAttribute("href")])).toEqual([["Gas and stakes", "/gas"]]);
  });

  it.each([
    ["live", "/queue?state=waiting&olderThanMinutes=60&mode=live", "/resolutions?mode=live"],
    ["sandbox", "/queue?state=waiting&olderThanMinutes=60&mode=sandbox", "/resolutions?mode=sandbox"],
  ])("leads to lists that show what was counted, of the same mode: %s", async (mode, queue, resolutions) => {
    const codes = ["OUTBOUND_WAITING", "RESOLUTIONS_OPEN", "JOBS_FAILED", "RECURRING_JOBS_FAILED"];
    const attention = codes.map((code) => ({ code, message: `About ${code}.`, count: 1, since: null }));
    await showOperator(OverviewPage, {
      path: "overview",
      at: `overview?mode=${mode}`,
      answers: { [OVERVIEW]: { ...answerOf(0, 0), attention } },
      permissions: ["overview.read", "outbound.read", "resolutions.read", "jobs.read"],
    });
    const list = await screen.findByRole("list", { name: "What needs attention" });
    const links = within(list).getAllByRole("link");
    expect(links.map((link) => link.getAttribute("href"))).toEqual([
      queue,
      resolutions,
      "/jobs?state=failed",
      "/jobs#recurring",
    ]);
  });

  it("says of how many fees the sum knows nothing", async () => {
    await showOperator(OverviewPage, { path: "overview", answers: { [OVERVIEW]: answerOf(3, 1200) } });
    const fees = await screen.findByRole("region", { name: "Fees" });
    const values = within(fees)
      .getAllByText(UNPRICED)
      .map((name) => [name.textContent, name.nextSibling?.textContent]);
    expect(values).toEqual([
      ["Swaps and bridges without a known price", "3"],
      ["Network fees without a known price", "1,200"],
    ]);
  });

  it("shows what is real, and what was tried out when asked for it", async () => {
    const answer = (request: Request) =>
      json(answerOf(new URL(request.url).searchParams.get("mode") === "sandbox" ? 7 : 3, 0));
    await showOperator(OverviewPage, { path: "overview", answers: { [OVERVIEW]: answer } });
    await screen.findByText("3");
    expect(screen.getByRole("button", { name: "Live" }).getAttribute("aria-pressed")).toBe("true");
    fireEvent.click(screen.getByRole("button", { name: "Sandbox" }));
    await screen.findByText("7");
    expect(screen.queryByText("3")).toBeNull();
  });

  it("leads to what was tried out where nothing real came in", async () => {
    const tried = { ...answerOf(0, 0), turnover: { ...answerOf(0, 0).turnover, deposits: 42 } };
    const answer = (request: Request) =>
      json(new URL(request.url).searchParams.get("mode") === "sandbox" ? tried : answerOf(0, 0));
    await showOperator(OverviewPage, { path: "overview", answers: { [OVERVIEW]: answer } });
    const part = await screen.findByRole("region", { name: "What came in" });
    expect(within(part).getByText("Nothing came in in this time.")).toBeTruthy();
    fireEvent.click(within(part).getByRole("button", { name: "Look at the sandbox" }));
    expect(await screen.findByText("42")).toBeTruthy();
    expect(screen.getByRole("button", { name: "Sandbox" }).getAttribute("aria-pressed")).toBe("true");
    expect(screen.queryByRole("button", { name: "Look at the sandbox" })).toBeNull();
  });

  it.each(["Look at the sandbox", "7 days"])(
    "does not tell what was asked for before as what is asked for now: %s",
    async (press) => {
      let asked = 0;
      const answer = () => {
        asked += 1;
        return asked === 1 ? json(answerOf(0, 0)) : new Promise<Response>(() => undefined);
      };
      await showOperator(OverviewPage, { path: "overview", answers: { [OVERVIEW]: answer } });
      fireEvent.click(await screen.findByRole("button", { name: press }));
      const told = () => screen.getByText("Nothing came in in this time.").closest<HTMLElement>("[aria-busy=true]");
      await expect.poll(told).toBeTruthy();
      expect(within(told() ?? document.body).getByText("Loading")).toBeTruthy();
    },
  );

  it("shows what was tried out where the address says so", async () => {
    const sent = await showOperator(OverviewPage, {
      path: "overview",
      at: "overview?mode=sandbox",
      answers: { [OVERVIEW]: answerOf(7, 0) },
    });
    await screen.findByText("7");
    expect(new URL(sent[0]?.url ?? "").searchParams.get("mode")).toBe("sandbox");
  });

  it("does not speak of prices where all are known", async () => {
    await showOperator(OverviewPage, { path: "overview", answers: { [OVERVIEW]: answerOf(0, 0) } });
    const fees = await screen.findByRole("region", { name: "Fees" });
    expect(within(fees).queryByText(UNPRICED)).toBeNull();
  });
});
