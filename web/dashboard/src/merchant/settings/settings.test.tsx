import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, PROJECT, projectOf, show } from "../../testing/render";

import { SettingsPage } from "./SettingsPage";

it.each([
  ["says that the secret before the present one ends", "2036-01-01T12:00:00.000Z", /It would have signed until.*2036/],
  ["says nothing of a secret that has ended", null, null],
] as const)("replacing the project's secret %s", async (_, previousSecretUntil, words) => {
  await show(SettingsPage, {
    path: "settings",
    answers: {},
    permissions: ["projects.change"],
    project: { previousSecretUntil },
  });
  fireEvent.click(await screen.findByRole("button", { name: "Replace the signing secret" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText(/The old secret is invalid at once/)).toBeTruthy();
  if (words === null) expect(dialog.textContent).not.toContain("It would have signed until");
  else expect(dialog.textContent).toMatch(words);
});

it("shows what is set to whoever may only read, and no field that cannot be filled in", async () => {
  const project = { paymentWebhookUrl: "https://shop.example/hook", extendedEvents: true, graceHours: 36 };
  await show(SettingsPage, { path: "settings", answers: {}, permissions: ["read"], project });
  const facts = [...document.querySelectorAll("dl > div")].map(({ textContent }) => textContent);
  for (const fact of ["Webhook URLhttps://shop.example/hook", "Grace, in hours36", "Extended eventsYes"]) {
    expect(facts).toContain(fact);
  }
  expect(document.querySelector("main input, form input")).toBeNull();
  expect(screen.queryByRole("button", { name: "Replace the signing secret" })).toBeNull();
});

describe("a project's settings", () => {
  const PATCH = `PATCH /api/merchant/projects/${PROJECT}`;

  async function open(): Promise<readonly object[]> {
    const bodies: Parameters<typeof projectOf>[0][] = [];
    await show(SettingsPage, {
      path: "settings",
      answers: {
        [PATCH]: async (request) => {
          const body = (await request.json()) as (typeof bodies)[number];
          bodies.push(body);
          return json({ success: true, project: projectOf(body) });
        },
        "GET /api/merchant/projects": () =>
          json({
            success: true,
            page: 1,
            limit: 100,
            total: 1,
            projects: [projectOf(bodies.reduce((all, body) => ({ ...all, ...body }), {}))],
          }),
      },
      permissions: ["projects.change"],
    });
    await screen.findByRole("button", { name: "Save" });
    return bodies;
  }

  const save = () => {
    fireEvent.click(screen.getByRole("button", { name: "Save" }));
  };

  it("are sent where they differ and nowhere else, so that what others changed stays", async () => {
    const bodies = await open();
    fireEvent.change(screen.getByLabelText(/^Name/), { target: { value: "Nordlicht 2" } });
    fireEvent.change(screen.getByLabelText(/^Webhook URL/), { target: { value: "https://x.example" } });
    fireEvent.change(screen.getByLabelText(/^Webhook URL/), { target: { value: "" } });
    save();
    expect(await screen.findByText("Saved")).toBeTruthy();
    fireEvent.change(screen.getByLabelText(/^Grace/), { target: { value: "24" } });
    expect(screen.queryByText("Saved")).toBeNull();
    save();
    expect(await screen.findByText("Saved")).toBeTruthy();
    expect(bodies).toEqual([{ name: "Nordlicht 2" }, { graceHours: 24 }]);
  });

  it("take no number that was cleared for nought", async () => {
    const bodies = await open();
    fireEvent.change(screen.getByLabelText(/^Grace/), { target: { value: "" } });
    fireEvent.change(screen.getByLabelText(/^Name/), { target: { value: "Nordlicht 2" } });
    save();
    expect(screen.getByLabelText<HTMLInputElement>(/^Grace/).validity.valueMissing).toBe(true);
    expect(bodies).toEqual([]);
    fireEvent.change(screen.getByLabelText(/^Grace/), { target: { value: "0" } });
    save();
    expect(await screen.findByText("Saved")).toBeTruthy();
    expect(bodies).toEqual([{ name: "Nordlicht 2", graceHours: 0 }]);
  });

  it("keep what is typed while they are saved, and save it next", async () => {
    const bodies = await open();
    fireEvent.change(screen.getByLabelText(/^Name/), { target: { value: "Nordlicht 2" } });
    save();
    fireEvent.change(screen.getByLabelText(/^Grace/), { target: { value: "24" } });
    await waitFor(() => {
      expect(screen.getByRole("button", { name: "Save" }).hasAttribute("data-loading")).toBe(false);
    });
    expect(screen.getByLabelText<HTMLInputElement>(/^Grace/).value).toBe("24");
    expect(screen.queryByText("Saved")).toBeNull();
    save();
    expect(await screen.findByText("Saved")).toBeTruthy();
    expect(bodies).toEqual([{ name: "Nordlicht 2" }, { graceHours: 24 }]);
  });

  it("say what it means before the project is switched off", async () => {
    const bodies = await open();
    fireEvent.click(screen.getByRole("switch", { name: /^Active/ }));
    save();
    const dialog = await screen.findByRole("dialog", { name: "Switch Nordlicht off?" });
    expect(bodies).toEqual([]);
    fireEvent.click(within(dialog).getByRole("button", { name: "Switch it off" }));
    expect(await screen.findByText("Saved")).toBeTruthy();
    expect(bodies).toEqual([{ isActive: false }]);
  });
});
