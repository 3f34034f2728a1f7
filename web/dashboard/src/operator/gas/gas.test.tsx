import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { DESCRIBED } from "../../testing/described";
import { showOperator } from "../../testing/render";
import type { Schemas } from "../api";

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

it.each([
  ["Stake", "Balance", "7.25"],
  ["Unstake", "Staked", "5000"],
  ["Withdraw", "Can be withdrawn", "0"],
])("who changes a stake sees how much there is: %s", async (act, label, amount) => {
  const { gasStations } = STATIONS as { readonly gasStations: readonly [Schemas["GasStationView"]] };
  const stake = { ...gasStations[0].stake, staked: "5000", withdrawable: "0" };
  await showOperator(GasPage, {
    path: "gas",
    permissions: ["stakes.change"],
    answers: {
      "GET /api/admin/gas-stations": { gasStations: [{ ...gasStations[0], balance: "7.25", stake }] },
      "GET /api/admin/stakes": { ...LISTED, stakes: [] },
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: act }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText(label).nextElementSibling?.textContent.replace(",", "")).toContain(amount);
});
