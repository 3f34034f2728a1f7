import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, refused, show, type Answers } from "../../testing/render";
import { keepsToStates } from "../../testing/states";

import { NewTracker } from "./NewTracker";
import { progressOf } from "./Past";
import type { Movement, Tracker } from "./queries";
import { TrackerList } from "./TrackerList";
import { TrackerPage } from "./TrackerPage";
import { readAddresses } from "./Watched";

const LIST = `/api/dashboard/projects/${PROJECT}/trackers`;
const ADDRESS = "0x5555555555555555555555555555555555555555";
const TRACKER: Tracker = {
  webhookId: "whk_1",
  projectId: PROJECT,
  url: "https://desk.example/hook",
  name: "Desk",
  chain: "polygon",
  mode: "live",
  startBlock: 100,
  maxAddresses: 1000,
  addresses: 1,
  isActive: true,
  history: { state: "reading", fromBlock: 100, toBlock: 299, readBlock: 149, error: null, untoldMovements: 0 },
  metadata: null,
  credentialsRotatedAt: null,
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
};
const MOVEMENT: Movement = {
  transactionId: "mov_1",
  chain: "polygon",
  address: ADDRESS,
  direction: "in",
  token: "USDT",
  contractAddress: null,
  amount: "25",
  from: null,
  to: ADDRESS,
  txHash: "0xab",
  blockNumber: 61_000_000,
  blockHash: "0xcd",
  blockTime: "2026-01-01T12:00:00.000Z",
  confirmations: 12,
  requiredConfirmations: 12,
  status: "confirmed",
  createdAt: "2026-01-01T12:00:00.000Z",
};

describe("the list of trackers", () => {
  keepsToStates({ page: TrackerList, path: "trackers", asks: `GET ${LIST}` });

  it("shows how full each is, and how far its past is", async () => {
    await show(TrackerList, { path: "trackers", answers: { [`GET ${LIST}`]: { ...one, webhooks: [TRACKER] } } });
    const row = await screen.findByRole("row", { name: /Desk/ });
    expect(within(row).getByText("1 of 1,000")).toBeTruthy();
    expect(within(row).getByText("Reading")).toBeTruthy();
  });

  it("says where there are none, and offers none to whoever may not make one", async () => {
    const answers = { [`GET ${LIST}`]: { ...nothing, webhooks: [] } };
    await show(TrackerList, { path: "trackers", answers, permissions: ["read"] });
    expect(await screen.findByText("No trackers yet")).toBeTruthy();
    expect(screen.queryByRole("link", { name: "New tracker" })).toBeNull();
  });
});

describe("a new tracker", () => {
  it("is made from a block on, and shows its secret", async () => {
    const bodies: unknown[] = [];
    await show(NewTracker, {
      path: "trackers/new",
      answers: {
        "GET /api/public/chains": { success: true, chains: [{ chain: "polygon", name: "Polygon" }] },
        [`GET /api/dashboard/projects/${PROJECT}/wallet/coins`]: { coins: [{ chain: "polygon", token: "USDT" }] },
        [`POST ${LIST}`]: async (request) => {
          bodies.push(await request.json());
          return json({ webhook: { ...TRACKER, authToken: "tok_1", secretKey: "5c5c" } }, 201);
        },
      },
    });
    fireEvent.change(screen.getByLabelText(/^Name/), { target: { value: "Desk" } });
    fireEvent.change(screen.getByLabelText(/^URL/), { target: { value: TRACKER.url } });
    fireEvent.click(screen.getByRole("combobox", { name: /Chain/ }));
    fireEvent.click(await screen.findByRole("option", { name: "Polygon", hidden: true }));
    fireEvent.change(screen.getByLabelText(/^From block/), { target: { value: "1e3" } });
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Make the tracker" }).disabled).toBe(true);
    fireEvent.change(screen.getByLabelText(/^From block/), { target: { value: "100" } });
    fireEvent.click(screen.getByRole("button", { name: "Make the tracker" }));
    expect(await screen.findByText("5c5c")).toBeTruthy();
    expect(bodies).toEqual([{ name: "Desk", url: TRACKER.url, chain: "polygon", startBlock: 100 }]);
  });
});

describe("the page of one tracker", () => {
  const at = { path: "trackers/$webhookId", at: "trackers/whk_1" };
  const asks = `GET ${LIST}/whk_1`;
  const answers: Answers = {
    [asks]: { webhook: TRACKER },
    "GET /api/merchant/webhooks": { ...one, webhooks: [{ ...TRACKER, authToken: "tok_1" }] },
    "GET /api/webhook/transaction/list": { ...one, transactions: [MOVEMENT] },
    "GET /api/webhook/address/list": {
      ...one,
      addresses: [{ address: ADDRESS, label: "Till 4", metadata: null, addedAt: "2026-01-01T12:00:00.000Z" }],
    },
  };
  keepsToStates({ page: TrackerPage, ...at, asks });

  it("shows how far the past is, what moved with its deliveries, and what is watched", async () => {
    const sent = await show(TrackerPage, { ...at, answers });
    const read = await screen.findByRole<HTMLProgressElement>("progressbar", { name: "Blocks read" });
    expect([read.value, read.max]).toEqual([50, 200]);
    const told = await screen.findByRole("link", { name: "What was told" });
    expect(told.getAttribute("href")).toBe(`/${PROJECT}/webhooks?resourceId=mov_1`);
    expect(await screen.findByText("Till 4")).toBeTruthy();
    const inside = sent.filter((request) => new URL(request.url).pathname.startsWith("/api/webhook/"));
    expect(inside.map((request) => request.headers.get("X-Auth-Token"))).toEqual(["tok_1", "tok_1"]);
    expect(inside.map((request) => request.headers.get("Authorization"))).toEqual([null, null]);
  });

  it("asks for no token where the role may not have it", async () => {
    const sent = await show(TrackerPage, { ...at, answers, permissions: ["read"] });
    expect(await screen.findByText(/open to whoever manages trackers/)).toBeTruthy();
    expect(sent.some((request) => request.url.includes("/api/merchant/webhooks"))).toBe(false);
    expect(screen.queryByRole("button", { name: "Delete" })).toBeNull();
  });

  it("sends a test, and says what the server answered", async () => {
    const tested = {
      success: true,
      delivered: false,
      statusCode: 404,
      durationMs: 12,
      responseBody: "nobody",
      error: null,
    };
    const sent = await show(TrackerPage, {
      ...at,
      answers: { ...answers, "POST /api/webhook/test": () => json(tested) },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Send a test" }));
    expect(await screen.findByText("nobody")).toBeTruthy();
    const test = sent.find((request) => request.url.endsWith("/api/webhook/test"));
    expect(test?.headers.get("X-Auth-Token")).toBe("tok_1");
  });

  it("changes name and URL, and says in the dialog what is wrong with them", async () => {
    const bodies: unknown[] = [];
    await show(TrackerPage, {
      ...at,
      answers: {
        ...answers,
        "POST /api/webhook/update": async (request) => {
          bodies.push(await request.json());
          return bodies.length === 1 ? refused(400, "VALIDATION_ERROR") : json({ webhook: TRACKER });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Change name and URL" }));
    const dialog = await screen.findByRole("dialog", { name: "Change this tracker?" });
    fireEvent.change(within(dialog).getByLabelText(/^URL/), { target: { value: " https://desk.example/2 " } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Change name and URL" }));
    expect(await within(dialog).findByText("VALIDATION_ERROR")).toBeTruthy();
    fireEvent.click(within(dialog).getByRole("button", { name: "Change name and URL" }));
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    expect(bodies).toEqual(Array(2).fill({ name: "Desk", url: "https://desk.example/2" }));
  });

  it("replaces token and secret when the name is typed, shows them once, and goes on with the new token", async () => {
    const fresh = { webhookId: "whk_1", authToken: "tok_2", secretKey: "7e7e", rotatedAt: TRACKER.createdAt };
    const sent = await show(TrackerPage, {
      ...at,
      answers: { ...answers, "POST /api/webhook/regenerate-secret": () => json({ webhook: fresh, warning: "" }) },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Replace token and secret" }));
    const dialog = await screen.findByRole("dialog");
    const act = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Replace token and secret" });
    expect(act.disabled).toBe(true);
    fireEvent.change(within(dialog).getByLabelText(/Desk/), { target: { value: "Desk" } });
    fireEvent.click(act);
    expect(await screen.findByText("7e7e")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Send a test" }));
    const tokens = () =>
      sent.filter((one) => one.url.endsWith("/api/webhook/test")).map((one) => one.headers.get("X-Auth-Token"));
    await expect.poll(tokens, { timeout: 20_000 }).toEqual(["tok_2"]);
  });

  it("asks before it stops reading the past", async () => {
    const stopped: Request[] = [];
    await show(TrackerPage, {
      ...at,
      answers: {
        ...answers,
        [`POST ${LIST}/whk_1/history/cancel`]: (request) => {
          stopped.push(request);
          return json({ webhook: TRACKER });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Stop reading" }));
    const dialog = await screen.findByRole("dialog", { name: "Stop reading the past?" });
    expect(stopped).toHaveLength(0);
    fireEvent.click(within(dialog).getByRole("button", { name: "Stop reading" }));
    await expect.poll(() => stopped.length, { timeout: 20_000 }).toBe(1);
  });

  it("keeps in the dialog what was not watched, with the reason", async () => {
    const bodies: unknown[] = [];
    await show(TrackerPage, {
      ...at,
      answers: {
        ...answers,
        "POST /api/webhook/address/add-bulk": async (request) => {
          bodies.push(await request.json());
          const results = [
            { index: 0, address: ADDRESS, result: "added", reason: null },
            { index: 1, address: "0x12", result: "invalid", reason: "is no address on Polygon" },
          ];
          return json({ success: true, added: 1, exists: 0, invalid: 1, overLimit: 0, results });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Add addresses" }));
    const dialog = await screen.findByRole("dialog", { name: "Add addresses" });
    const text = within(dialog).getByLabelText<HTMLTextAreaElement>(/^Addresses/);
    fireEvent.change(text, { target: { value: `${ADDRESS}, Till 4\n0x12, Cold` } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Watch" }));
    expect(await within(dialog).findByText(/is no address on Polygon/)).toBeTruthy();
    expect(text.value).toBe("0x12, Cold");
    expect(bodies).toEqual([
      {
        addresses: [
          { address: ADDRESS, label: "Till 4" },
          { address: "0x12", label: "Cold" },
        ],
      },
    ]);
  });
});

it("reads addresses however they are written down, each once", () => {
  expect(readAddresses(" 0xa \r\n\n0xb;Cold, old\n0xa\tHot")).toEqual([
    { address: "0xa", label: "Hot" },
    { address: "0xb", label: "Cold, old" },
  ]);
});

it("knows how far the past is also before it began, and when its end moved", () => {
  const history = { state: "reading" as const, fromBlock: 10, toBlock: 19, error: null, untoldMovements: 0 };
  expect(progressOf({ ...history, readBlock: null })).toEqual({ read: 0, all: 10 });
  expect(progressOf({ ...history, readBlock: 25 })).toEqual({ read: 10, all: 10 });
  expect(progressOf({ ...history, fromBlock: null, readBlock: null })).toBeNull();
});
