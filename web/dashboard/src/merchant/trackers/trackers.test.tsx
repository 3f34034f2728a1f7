import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, nothing, one, PROJECT, show } from "../../testing/render";

import { NewTracker } from "./NewTracker";
import { progressOf } from "./Past";
import { ADDRESS, answers, asks, at, LIST, TRACKER } from "./samples";
import { TrackerList } from "./TrackerList";
import { TrackerPage } from "./TrackerPage";
import { readAddresses } from "./Watched";

describe("the list of trackers", () => {
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
        [`GET /api/dashboard/projects/${PROJECT}/wallet/coins`]: {
          coins: [
            { chain: "polygon", token: "USDT", availability: "live" },
            { chain: "ton", token: "USDT", availability: "simulated" },
          ],
        },
        [`POST ${LIST}`]: async (request) => {
          bodies.push(await request.json());
          return json({ webhook: { ...TRACKER, authToken: "tok_1", secretKey: "5c5c" } }, 201);
        },
      },
    });
    fireEvent.change(await screen.findByLabelText(/^Name/), { target: { value: "Desk" } });
    fireEvent.change(screen.getByLabelText(/^URL/), { target: { value: TRACKER.url } });
    fireEvent.click(screen.getByRole("combobox", { name: /Chain/ }));
    expect(screen.queryByRole("option", { name: "ton", hidden: true })).toBeNull();
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

  it("begins with what is to be watched where that is nothing yet", async () => {
    const empty = { webhook: { ...TRACKER, addresses: 0 } };
    for (const [own, first] of [
      [answers, "Movements"],
      [{ ...answers, [`GET ${LIST}/whk_1`]: empty }, "Addresses"],
    ] as const) {
      await show(TrackerPage, { ...at, answers: own });
      await screen.findByRole("heading", { name: "Addresses" });
      const parts = screen.getAllByRole("heading", { name: /^(Addresses|Movements)$/ });
      expect(parts[0]?.textContent).toBe(first);
      cleanup();
    }
  });

  it.each([
    [true, /moved there from block 100 on/, "Told from block 100 on"],
    [false, /nothing before block 100/, "Not told: each address from when it was added on"],
  ])(
    "says whether the past is told, and offers nothing but to add an address where there is none: %s",
    async (...told) => {
      const [readsPast, words, past] = told;
      await show(TrackerPage, {
        ...at,
        answers: {
          ...answers,
          [asks]: { webhook: { ...TRACKER, addresses: 0, readsPast, history: null } },
          "GET /api/webhook/address/list": { ...nothing, addresses: [] },
          "GET /api/webhook/transaction/list": { ...nothing, transactions: [] },
        },
      });
      const region = within(await screen.findByRole("region", { name: "Addresses" }));
      expect(await region.findByText(words)).toBeTruthy();
      expect(screen.getByText("The past", { selector: "dt" }).nextElementSibling?.textContent).toBe(past);
      expect(await screen.findByText("Nothing has moved")).toBeTruthy();
      expect(screen.queryByRole("button", { name: "Download CSV" })).toBeNull();
      expect(screen.queryByLabelText("A whole address")).toBeNull();
      expect(screen.queryByRole("combobox", { name: "Direction" })).toBeNull();
      fireEvent.click(region.getByRole("button", { name: "Add addresses" }));
      expect(await screen.findByRole("dialog", { name: "Add addresses" })).toBeTruthy();
    },
  );

  it("sends again what was dropped also where its last address was taken off since", async () => {
    const sent: unknown[] = [];
    await show(TrackerPage, {
      ...at,
      answers: {
        ...answers,
        [asks]: { webhook: { ...TRACKER, addresses: 0 } },
        [`POST ${LIST}/whk_1/redeliver`]: async (request) => {
          sent.push(await request.json());
          return json({ success: true, queued: 3, more: false });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Send dropped ones again" }));
    const dialog = within(await screen.findByRole("dialog", { name: /dropped in the last day/ }));
    fireEvent.click(dialog.getByRole("button", { name: "Send dropped ones again" }));
    expect(await screen.findByText(/^3 /)).toBeTruthy();
    expect(sent).toHaveLength(1);
  });

  it("saves addresses and movements as files, with its token", async () => {
    const sent = await show(TrackerPage, { ...at, at: `${at.at}?direction=in`, answers });
    const addresses = await screen.findByRole("region", { name: "Addresses" });
    const movements = await screen.findByRole("region", { name: "Movements" });
    for (const region of [addresses, movements]) {
      fireEvent.click(within(region).getByRole("button", { name: "Download CSV" }));
    }
    const files = () => sent.filter(({ url }) => url.includes("format=csv"));
    await expect.poll(() => files().length, { timeout: 20_000 }).toBe(2);
    expect(
      files()
        .map(({ url }) => new URL(url).pathname + new URL(url).search)
        .sort(),
    ).toEqual(["/api/webhook/address/list?format=csv", "/api/webhook/transaction/list?format=csv&direction=in"]);
    expect(files().map(({ headers }) => headers.get("X-Auth-Token"))).toEqual(["tok_1", "tok_1"]);
  });

  it("asks for no token where the role may not have it", async () => {
    const sent = await show(TrackerPage, { ...at, answers, permissions: ["read"] });
    expect(await screen.findByText(/open to whoever manages trackers/)).toBeTruthy();
    expect(sent.some((request) => request.url.includes("/api/merchant/webhooks"))).toBe(false);
    expect(screen.queryByRole("button", { name: "Delete" })).toBeNull();
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

  it.each([
    ["gives a watched address another name", " Till 5 ", "Till 5"],
    ["takes its name away", "", null],
  ])("%s", async (_, typed, label) => {
    const bodies: unknown[] = [];
    await show(TrackerPage, {
      ...at,
      answers: {
        ...answers,
        "POST /api/webhook/address/update": async (request) => {
          bodies.push(await request.json());
          return json({ success: true });
        },
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Rename" }));
    const dialog = await screen.findByRole("dialog", { name: "What shall this address be called?" });
    const name = within(dialog).getByLabelText<HTMLInputElement>(/^Name/);
    expect(name.value).toBe("Till 4");
    fireEvent.change(name, { target: { value: typed } });
    fireEvent.click(within(dialog).getByRole("button", { name: "Rename" }));
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    expect(bodies).toEqual([{ address: ADDRESS, label }]);
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
