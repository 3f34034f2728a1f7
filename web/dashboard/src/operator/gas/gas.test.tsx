import { screen } from "@testing-library/react";
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
