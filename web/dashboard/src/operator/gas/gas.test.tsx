import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { DESCRIBED } from "../../testing/described";
import { json, knowOperator, mount, showOperator, toldIn } from "../../testing/render";
import { operatorSession, type Schemas } from "../api";

import { GasPage } from "./GasPage";

type Stake = Schemas["StakeStakeView"];

const LISTED = DESCRIBED.operator.example("/api/admin/stakes") as { readonly stakes: readonly [Stake] };
const STATIONS = DESCRIBED.operator.example("/api/admin/gas-stations");

afterEach(async () => {
  await chooseLanguage("en");
});

async function shown(stake: Partial<Stake>): Promise<void> {
  await showOperator(GasPage, {
    path: "gas",
    answers: {
      "GET /api/admin/gas-stations": STATIONS ?? {},
      "GET /api/admin/stakes": { ...LISTED, stakes: [{ ...LISTED.stakes[0], ...stake }] },
    },
  });
}

const WAITS = {
  status: "waiting",
  waitsFor: "fees_above_ceiling",
  waitsForText: "Sending costs more now than the chain's ceiling allows.",
} as const;
const FAILED = { status: "failed", error: "The transaction was mined, and failed.", errorCode: "REVERTED" } as const;

it.each([
  [WAITS, WAITS.waitsForText],
  [FAILED, FAILED.error],
])("what a stake waits for, and why it failed, is the API's own sentence in English: %j", async (stake, own) => {
  await shown(stake);
  expect((await screen.findByText(own)).lang).toBe("en");
});

it.each([
  [WAITS, "L’envoi coûte plus que le plafond de la chaîne."],
  [FAILED, "La transaction a été minée et a échoué."],
])("it is said in the reader's language: %j", async (stake, sentence) => {
  await chooseLanguage("fr");
  await shown(stake);
  expect(await screen.findByText(sentence)).toBeTruthy();
});

type Station = Schemas["GasStationView"];

/** Return the example's station with such a balance and stake. */
function stationOf(balance: string, stake: object): object {
  const { gasStations } = STATIONS as { readonly gasStations: readonly [Station] };
  return { gasStations: [{ ...gasStations[0], balance, stake: { ...gasStations[0].stake, ...stake } }] };
}

it.each([
  ["20000", "2026-02-14T12:00:00.000Z", "Feb 14, 2026"],
  ["0", null, undefined],
])("of %s that is being unstaked it says when all of it can be withdrawn", async (leaving, freeAt, day) => {
  await showOperator(GasPage, {
    path: "gas",
    answers: { "GET /api/admin/gas-stations": stationOf("7", { leaving, freeAt }), "GET /api/admin/stakes": LISTED },
  });
  await screen.findByText("Being unstaked");
  const said = screen.queryByText("All being unstaked can be withdrawn from")?.nextElementSibling?.textContent;
  expect(said?.slice(0, day?.length)).toBe(day);
});

async function showStation(balance: string, stake: object): Promise<void> {
  await showOperator(GasPage, {
    path: "gas",
    permissions: ["stakes.change"],
    answers: {
      "GET /api/admin/gas-stations": stationOf(balance, stake),
      "GET /api/admin/stakes": { ...LISTED, stakes: [] },
    },
  });
}

it.each([
  ["Stake", "Balance", "7.25"],
  ["Unstake", "Staked", "5000"],
  ["Withdraw", "Can be withdrawn", "12"],
])("who changes a stake sees how much there is: %s", async (act, label, amount) => {
  await showStation("7.25", { staked: "5000", withdrawable: "12" });
  fireEvent.click(await screen.findByRole("button", { name: act }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText(label).nextElementSibling?.textContent.replace(",", "")).toContain(amount);
});

it("a change whose answer was lost is sent under the same key again, and said to have been asked for before", async () => {
  const bodies: { readonly amount: string; readonly idempotencyKey: string }[] = [];
  await showOperator(GasPage, {
    path: "gas",
    permissions: ["stakes.change"],
    answers: {
      "GET /api/admin/gas-stations": stationOf("7.25", {}),
      "GET /api/admin/stakes": { ...LISTED, stakes: [] },
      "POST /api/admin/stakes": async (request) => {
        bodies.push((await request.json()) as (typeof bodies)[number]);
        if (bodies.length === 1) throw new TypeError("Failed to fetch");
        return json({ success: true, idempotent: true, stake: LISTED.stakes[0] });
      },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Stake" }));
  const dialog = within(await screen.findByRole("dialog"));
  fireEvent.change(dialog.getByLabelText(/^Amount/), { target: { value: "5" } });
  fireEvent.click(dialog.getByRole("button", { name: "Stake" }));
  expect(await dialog.findByText("NO_ANSWER_ONCE")).toBeTruthy();
  fireEvent.click(dialog.getByRole("button", { name: "Stake" }));
  expect(await dialog.findByText("SENT_BEFORE")).toBeTruthy();
  expect(bodies.map((body) => body.amount)).toEqual(["5", "5"]);
  expect(bodies[0]?.idempotencyKey).toMatch(/^[\da-f-]{36}$/);
  expect(bodies[1]?.idempotencyKey).toBe(bodies[0]?.idempotencyKey);
});

it.each([
  ["Stake", "The balance is empty", {}],
  ["Unstake", "Nothing is staked", {}],
  ["Unstake", "All of the stake is lent", { staked: "5000", lent: "5000.0" }],
  ["Withdraw", "Nothing can be withdrawn yet", {}],
])("what there is nothing of cannot be changed, and why is said: %s, %s", async (act, why, stake) => {
  await showStation("0", { staked: "0", lent: "0", withdrawable: "0.00", ...stake });
  const button = await screen.findByRole<HTMLButtonElement>("button", { name: act });
  expect(button.disabled).toBe(true);
  expect(document.getElementById(button.getAttribute("aria-describedby") ?? "")?.textContent).toBe(why);
});

it("a dialog sends nothing once there is nothing any more of what it is about", async () => {
  let withdrawable = "12";
  const { client } = await mount(GasPage, {
    session: operatorSession,
    path: "/gas",
    at: "/gas",
    answer: ({ url }) => json(url.includes("/stakes") ? { ...LISTED, stakes: [] } : stationOf("1", { withdrawable })),
    known: (queries) => {
      knowOperator(queries, ["stakes.change"]);
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Withdraw" }));
  const dialog = await screen.findByRole("dialog");
  const act = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Withdraw" });
  expect(act.disabled).toBe(false);
  withdrawable = "0";
  await client.invalidateQueries({ queryKey: ["gas_station"] });
  await within(dialog).findByText("Nothing can be withdrawn yet");
  expect(act.disabled).toBe(true);
});

it.each([
  [true, false, "It is low: fill it up"],
  [false, true, "Too little stake: transfers burn coin"],
  [true, true, "It is low: fill it upToo little stake: transfers burn coin"],
  [false, false, "Enough"],
])("what is low says so, and below how much it is: %s, %s", async (isLow, isStakeLow, level) => {
  const { gasStations } = STATIONS as { readonly gasStations: readonly [Station] };
  const [station] = gasStations;
  const shownOne = {
    ...station,
    isLow,
    lowBelow: "2.5",
    stake: { ...station.stake, isLow: isStakeLow, lowBelow: "500" },
  };
  await showOperator(GasPage, {
    path: "gas",
    answers: {
      "GET /api/admin/gas-stations": { gasStations: [shownOne] },
      "GET /api/admin/stakes": { ...LISTED, stakes: [] },
    },
  });
  const facts = new Map(toldIn(await screen.findByRole("region", { name: "ethereum" })));
  expect(facts.get("State")).toBe(level);
  expect(facts.get("Low below")).toContain("2.5 ETH");
  expect(facts.get("Stake for transfers")).toContain("4,000 ETH");
  expect(facts.get("Stake low below")).toContain("500 ETH");
});

it("a station that no worker has read yet is not said to have enough", async () => {
  const { gasStations } = STATIONS as { readonly gasStations: readonly [Station] };
  const unseen = { ...gasStations[0], balance: null, isLow: null, lowBelow: null, checkedAt: null, stake: null };
  await showOperator(GasPage, {
    path: "gas",
    answers: {
      "GET /api/admin/gas-stations": { gasStations: [unseen] },
      "GET /api/admin/stakes": { ...LISTED, stakes: [] },
    },
  });
  const facts = new Map(toldIn(await screen.findByRole("region", { name: "ethereum" })));
  expect(facts.get("State")).toBe("Not read yet");
  expect(screen.queryByText("Enough")).toBeNull();
});

it.each([
  ["2026-01-31T12:00:01.000Z", true],
  ["2026-01-31T11:59:59.000Z", false],
])("what was read before the last change of the stake says so: %s", async (finishedAt, isBefore) => {
  const { gasStations } = STATIONS as { readonly gasStations: readonly [Station] };
  const change = { ...LISTED.stakes[0], chain: "ethereum", status: "done", finishedAt };
  await showOperator(GasPage, {
    path: "gas",
    answers: {
      "GET /api/admin/gas-stations": { gasStations: [{ ...gasStations[0], checkedAt: "2026-01-31T12:00:00.000Z" }] },
      "GET /api/admin/stakes": { ...LISTED, stakes: [change] },
    },
  });
  await screen.findByRole("table", { name: "Changes of stakes" });
  expect(screen.queryAllByText(/before the last change of the stake/)).toHaveLength(Number(isBefore));
});
