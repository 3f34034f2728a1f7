import { screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { chooseLanguage } from "../../i18n";
import { DESCRIBED } from "../../testing/described";
import { showOperator } from "../../testing/render";
import type { Schemas } from "../api";

import { ChainsPage } from "./ChainsPage";

const LISTED = DESCRIBED.operator.example("/api/admin/chains") as {
  readonly chains: readonly [Schemas["AdminChainView"]];
};

afterEach(async () => {
  await chooseLanguage("en");
});

async function shown(trouble: Partial<Schemas["AdminChainView"]>): Promise<void> {
  await showOperator(ChainsPage, {
    path: "chains",
    answers: { "GET /api/admin/chains": { ...LISTED, chains: [{ ...LISTED.chains[0], ...trouble }] } },
  });
}

const AWAY = { error: "node.example is away", errorCode: "CHAIN_UNAVAILABLE" } as const;
const NO_WORKER = { problem: "No worker tells that it watches this chain.", problemCode: "NO_WORKER" } as const;
const TAKEN = { setupProblem: "USDX at 0x5b was added.", setupProblemCode: "SYMBOL_TAKEN" } as const;

it("of a chain without endpoints is not told how many of none are healthy", async () => {
  await shown({ endpoints: [] });
  await screen.findByRole("table");
  expect(screen.queryByText("0 of 0")).toBeNull();
});

it.each([
  [40, "12 blocks · 40 seconds"],
  [36_000, "12 blocks · 10 hours"],
])("how far behind a chain is reads as a time: %s seconds", async (lagSeconds, words) => {
  await shown({ lagBlocks: 12, lagSeconds });
  expect((await screen.findByText(/^12 blocks/)).textContent).toBe(words);
});

it("what is wrong with a chain is the API's own sentence in English", async () => {
  await shown({ ...AWAY, ...NO_WORKER });
  expect((await screen.findByText(AWAY.error)).lang).toBe("en");
  expect(screen.queryByText(NO_WORKER.problem)).toBeNull();
});

it.each([
  [AWAY, /Kein Knoten der Chain antwortet\./, AWAY.error],
  [TAKEN, /gehört in der Datei des Betreibers/, TAKEN.setupProblem],
  [NO_WORKER, /Kein Worker meldet, dass er diese Chain beobachtet\./, null],
])("it is said in the reader's language, beside what that cannot name: %j", async (trouble, sentence, own) => {
  await chooseLanguage("de");
  await shown(trouble);
  expect(await screen.findByText(sentence)).toBeTruthy();
  if (own === null) expect(screen.queryByText(NO_WORKER.problem)).toBeNull();
  else expect(screen.getByText(own).lang).toBe("en");
});
