import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { learnTime } from "../../api/clock";
import { chooseLanguage } from "../../i18n";
import { DESCRIBED } from "../../testing/described";
import { json, showOperator } from "../../testing/render";
import { Page } from "../../ui/Page";
import type { Schemas } from "../api";

import { ChainPage } from "./ChainPage";
import { ChainsPage, Lag } from "./ChainsPage";

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
  [{ lagBlocks: 12, lagSeconds: 40 }, "12 blocks · last block 40 seconds ago"],
  [{ lagBlocks: 1, lagSeconds: 36_000, status: "delayed" }, "1 block · last block 10 hours ago"],
  // A chain that makes blocks only when there is something in them is not behind.
  [{ lagBlocks: 0, lagSeconds: 132 }, "Up to date · last block 2 minutes ago"],
  [{ lagBlocks: 0, lagSeconds: null }, "Up to date"],
  // Nobody knows what it has made since.
  [{ lagBlocks: 0, lagSeconds: 36_000, status: "down" }, "last block 10 hours ago"],
  [{ lagBlocks: 0, lagSeconds: 36_000, status: "paused" }, "last block 10 hours ago"],
] as const)(
  "how far behind a chain is says what is left to read, and how old what was read is: %j",
  async (lag, words) => {
    await shown({ status: "working", ...lag });
    const row = await screen.findByRole("row", { name: /Ethereum/ });
    const told = within(row).getByText(/^(Up to date|\d+ blocks?|last block)/);
    expect(told.parentElement?.textContent).toBe(words);
  },
);

it("a block grows older while no other answer comes", async () => {
  const chain = { ...LISTED.chains[0], lagBlocks: 12, lagSeconds: 40 };
  const hourAgo = Date.now() - 3_600_000;
  const Told = () => (
    <Page title="Chains">
      <Lag chain={chain} at={hourAgo} />
    </Page>
  );
  await showOperator(Told, { path: "chains", answers: {} });
  await screen.findByText(/last block 1 hour ago/);
});

it("a block is as old as told where the clock of the machine is wrong", async () => {
  for (const offMs of [5 * 3_600_000, -5 * 3_600_000, 0]) {
    learnTime(new Response(null, { headers: { Date: new Date(Date.now() + offMs).toUTCString() } }));
    await shown({ lagBlocks: 12, lagSeconds: 40 });
    expect(await screen.findByText(/last block 4\d seconds ago/)).toBeTruthy();
    cleanup();
  }
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

it.each([
  [23_400_001, "23,400,001"],
  [null, null],
])("from which block on can be read again is said before it is asked for: %s", async (rescanFrom, told) => {
  const { chain } = DESCRIBED.operator.example("/api/admin/chains/ethereum") as {
    readonly chain: Schemas["AdminChainView"];
  };
  await showOperator(ChainPage, {
    path: "chains/$chain",
    at: "chains/ethereum",
    permissions: ["chains.read", "chains.rescan"],
    answers: { "GET /api/admin/chains/ethereum": { chain: { ...chain, rescanFrom } } },
  });
  const button = await screen.findByRole<HTMLButtonElement>("button", { name: "Read blocks again" });
  if (told === null) {
    expect([button.disabled, screen.queryByText("This chain has not been read yet.") !== null]).toEqual([true, true]);
    return;
  }
  fireEvent.click(button);
  const fact = within(await screen.findByRole("dialog")).getByText("Lowest block that can be read again");
  expect(fact.nextElementSibling?.textContent).toContain(told);
});

it("whoever has blocks read again is led to the job that does", async () => {
  await showOperator(ChainPage, {
    path: "chains/$chain",
    at: "chains/ethereum",
    permissions: ["chains.read", "chains.rescan"],
    answers: {
      "GET /api/admin/chains/ethereum": DESCRIBED.operator.example("/api/admin/chains/ethereum") ?? {},
      "POST /api/admin/chains/ethereum/rescan": () => json({ success: true, jobId: "job_1" }, 201),
    },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Read blocks again" }));
  const dialog = await screen.findByRole("dialog");
  for (const [label, value] of [
    [/From block/, "7"],
    [/Reason/, "It was missed."],
  ] as const) {
    fireEvent.change(within(dialog).getByLabelText(label), { target: { value } });
  }
  fireEvent.click(within(dialog).getByRole("button", { name: "Read blocks again" }));
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});
