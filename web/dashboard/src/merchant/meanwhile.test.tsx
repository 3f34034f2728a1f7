/** What is switched while somebody has the dialog for it open: by somebody else, or by a try whose answer was lost. */
import { fireEvent, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { DESCRIBED } from "../testing/described";
import { PROJECT, show, type Answers } from "../testing/render";

import { AccountPage } from "./accounts/AccountPage";
import { CoinsPage } from "./coins/CoinsPage";
import { answers as ofTracker, asks, at as trackerAt, TRACKER } from "./trackers/samples";
import { TrackerPage } from "./trackers/TrackerPage";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const ACCOUNT = `GET ${BASE}/accounts/acc_1`;
const COINS = `GET ${BASE}/wallet/coins`;

/** Return what the API's description gives as an example of an answer, with one part of it different. */
function described(path: string, name: string, changed: object): object {
  const answer = DESCRIBED.merchant.example(path) as Readonly<Record<string, unknown>>;
  const part = answer[name];
  const [first] = (Array.isArray(part) ? part : [part]) as readonly object[];
  const other = { ...first, ...changed };
  return { ...answer, [name]: Array.isArray(part) ? [other] : other };
}

const account = (isActive: boolean) =>
  described("/api/dashboard/projects/{projectId}/accounts/{accountId}", "account", { isActive });
const coins = (enabled: boolean) => described("/api/dashboard/projects/{projectId}/wallet/coins", "coins", { enabled });

const TRACKER_CASE = [
  "a tracker",
  TrackerPage,
  trackerAt,
  (isOn: boolean): Answers => {
    return { ...ofTracker, [asks]: { webhook: { ...TRACKER, isActive: isOn } } };
  },
  "Switch off",
  "Switch on",
] as const;
const ACCOUNT_CASE = [
  "an account",
  AccountPage,
  { path: "accounts/$accountId", at: "accounts/acc_1" },
  (isOn: boolean): Answers => {
    return { [ACCOUNT]: account(isOn) };
  },
  "Switch off",
  "Switch on",
] as const;
const COIN_CASE = [
  "a coin",
  CoinsPage,
  { path: "coins" },
  (isOn: boolean): Answers => {
    return { [COINS]: coins(isOn) };
  },
  "Disable",
  "Enable",
] as const;

it.each([TRACKER_CASE, ACCOUNT_CASE, COIN_CASE])(
  "the dialog that switches %s does not become the one for the opposite, which the next click would do",
  async (_, Page, place, answersOf, off, on) => {
    let isOn = true;
    const now = (name: string) => () => Response.json(answersOf(isOn)[name]);
    const answers = Object.fromEntries(Object.keys(answersOf(true)).map((name) => [name, now(name)]));
    const sent = await show(Page, { ...place, answers });
    fireEvent.click(await screen.findByRole("button", { name: off }));
    expect(await screen.findByRole("dialog")).toBeTruthy();
    isOn = false;
    const later = Date.now() + 60_000;
    vi.spyOn(Date, "now").mockReturnValue(later);
    globalThis.dispatchEvent(new Event("visibilitychange"));
    expect(await screen.findByRole("button", { name: on })).toBeTruthy();
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(sent.filter((request) => request.method !== "GET")).toEqual([]);
  },
);
