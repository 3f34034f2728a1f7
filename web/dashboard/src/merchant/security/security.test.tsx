import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, refused, show, type Answer } from "../../testing/render";

import { SecurityPage } from "./SecurityPage";

const HERE = { sessionId: "ses_1", ip: null, userAgent: null, lastUsedAt: "2026-01-01T12:00:00.000Z", current: true };
const FACTOR = "/api/dashboard/two-factor";

async function open(answers: Readonly<Record<string, Answer | object>>): Promise<void> {
  await show(SecurityPage, {
    path: "security",
    answers: {
      [`GET ${FACTOR}`]: { success: true, enabled: true, recoveryCodesLeft: 9 },
      "GET /api/auth/sessions": { success: true, sessions: [HERE, { ...HERE, sessionId: "ses_2", current: false }] },
      ...answers,
    },
  });
  const [section] = await screen.findAllByRole("region", { name: "Second factor" });
  if (section === undefined) throw new Error("There is no second factor.");
  await within(section).findByText("9 recovery codes left");
  fireEvent.change(within(section).getByLabelText(/^Password/), { target: { value: "a long password" } });
  fireEvent.change(within(section).getByLabelText(/^Code/), { target: { value: "123456" } });
}

it("shows the key of a second factor to be copied, and leads back from setting it up", async () => {
  await show(SecurityPage, {
    path: "security",
    answers: {
      [`GET ${FACTOR}`]: { success: true, enabled: false, recoveryCodesLeft: 0 },
      [`POST ${FACTOR}/enrol`]: { success: true, secret: "JBSWY3DPEHPK3PXP", qrCode: "data:," },
      "GET /api/auth/sessions": { success: true, sessions: [] },
    },
  });
  const turnOn = await screen.findByRole("button", { name: "Turn it on" });
  const [password] = screen.getAllByLabelText(/^Password/);
  if (password === undefined) throw new Error("No password is asked for.");
  fireEvent.change(password, { target: { value: "a long password" } });
  fireEvent.click(turnOn);
  const key = await screen.findByRole("button", { name: /JBSWY3DPEHPK3PXP/ });
  expect(within(key).getByText("Copy it")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
  expect(screen.getByRole("button", { name: "Turn it on" })).toBeTruthy();
  expect(screen.queryByText("JBSWY3DPEHPK3PXP")).toBeNull();
});

it.each([
  ["security?next=%2Fprj_1%2Fpayouts%3Fstatus%3Dfailed", "/prj_1/payouts?status=failed"],
  ["security?next=%2F%2Fevil.example", undefined],
])("leads back to what wanted a second factor once it is on: %s", async (here, back) => {
  let isOn = false;
  await show(SecurityPage, {
    path: "security",
    at: here,
    answers: {
      [`GET ${FACTOR}`]: () => json({ success: true, enabled: isOn, recoveryCodesLeft: 10 }),
      [`POST ${FACTOR}/enrol`]: { success: true, secret: "JBSWY3DPEHPK3PXP", qrCode: "data:," },
      [`POST ${FACTOR}/confirm`]: () => {
        isOn = true;
        return json({ success: true, recoveryCodes: ["4k2m7-qvx4d"] });
      },
      "GET /api/auth/sessions": { success: true, sessions: [] },
    },
  });
  const turnOn = await screen.findByRole("button", { name: "Turn it on" });
  const [password] = screen.getAllByLabelText(/^Password/);
  if (password === undefined) throw new Error("No password is asked for.");
  fireEvent.change(password, { target: { value: "a long password" } });
  fireEvent.click(turnOn);
  const confirm = await screen.findByRole("button", { name: "Confirm" });
  const section = within(screen.getByRole("region", { name: "Second factor" }));
  fireEvent.change(section.getByLabelText(/^Code/), { target: { value: "123456" } });
  const leading = () => screen.queryByRole("link", { name: "Back to where you came from" })?.getAttribute("href");
  expect(leading()).toBeUndefined();
  fireEvent.click(confirm);
  expect(await screen.findByText("10 recovery codes left")).toBeTruthy();
  expect(leading()).toBe(back);
});

it.each(["enrol", "confirm"])(
  "shows that it is on where %s finds that it is already, and goes on saying so",
  async (refusing) => {
    let isOn = false;
    const on = () => {
      isOn = true;
      return refused(409, "TWO_FACTOR_ON");
    };
    await show(SecurityPage, {
      path: "security",
      answers: {
        [`GET ${FACTOR}`]: () => json({ success: true, enabled: isOn, recoveryCodesLeft: 10 }),
        [`POST ${FACTOR}/enrol`]: { success: true, secret: "JBSWY3DPEHPK3PXP", qrCode: "data:," },
        [`POST ${FACTOR}/${refusing}`]: on,
        "GET /api/auth/sessions": { success: true, sessions: [] },
      },
    });
    const section = within(await screen.findByRole("region", { name: "Second factor" }));
    fireEvent.change(await section.findByLabelText(/^Password/), { target: { value: "a long password" } });
    fireEvent.click(section.getByRole("button", { name: "Turn it on" }));
    if (refusing === "confirm") {
      fireEvent.change(await section.findByLabelText(/^Code/), { target: { value: "123456" } });
      fireEvent.click(section.getByRole("button", { name: "Confirm" }));
    }
    expect(await section.findByText("10 recovery codes left")).toBeTruthy();
    expect(section.getByRole("alert").textContent).toContain("TWO_FACTOR_ON");
  },
);

it("offers to end all other sessions only where there are any", async () => {
  await open({ "GET /api/auth/sessions": { success: true, sessions: [HERE] } });
  expect(await screen.findByText("This one")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "End all others" })).toBeNull();
});

describe("before it is done, it is said what happens when", () => {
  it.each([
    ["Turn it off", "Turn the second factor off?", /has everything/, `POST ${FACTOR}/disable`],
    ["New recovery codes", "Make new recovery codes?", /stop working at once/, `POST ${FACTOR}/recovery-codes`],
    ["End all others", "End all other sessions?", /signed out at once/, "DELETE /api/auth/sessions"],
  ])("%s", async (act, title, words, route) => {
    let done = 0;
    await open({
      [route]: () => {
        done += 1;
        return json({ success: true, recoveryCodes: ["4k2m7-qvx4d"] });
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: act }));
    let dialog = await screen.findByRole("dialog", { name: title });
    expect(within(dialog).getByText(words)).toBeTruthy();
    fireEvent.click(within(dialog).getByRole("button", { name: "Cancel" }));
    await waitFor(() => {
      expect(screen.queryByRole("dialog")).toBeNull();
    });
    expect(done).toBe(0);
    fireEvent.click(screen.getByRole("button", { name: act }));
    dialog = await screen.findByRole("dialog", { name: title });
    fireEvent.click(within(dialog).getByRole("button", { name: act }));
    await waitFor(() => {
      expect(screen.queryByRole("dialog")).toBeNull();
    });
    expect(done).toBe(1);
  });
});
