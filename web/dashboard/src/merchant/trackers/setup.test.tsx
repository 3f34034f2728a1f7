import { fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, one, refused, show } from "../../testing/render";

import { answers, at, TRACKER } from "./samples";
import { TrackerPage } from "./TrackerPage";

/** Replace token and secret, which the dialog lets be done when the name is typed. */
async function replace() {
  fireEvent.click(await screen.findByRole("button", { name: "Replace token and secret" }));
  const dialog = await screen.findByRole("dialog");
  const act = within(dialog).getByRole<HTMLButtonElement>("button", { name: "Replace token and secret" });
  expect(act.disabled).toBe(true);
  fireEvent.change(within(dialog).getByLabelText(/Desk/), { target: { value: "Desk" } });
  fireEvent.click(act);
  return { dialog, act };
}

describe("where a tracker delivers", () => {
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

  it("changes the URL alone where the name is left, and says in the dialog what is wrong with it", async () => {
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
    expect(bodies).toEqual(Array(2).fill({ url: "https://desk.example/2" }));
  });

  it("replaces token and secret when the name is typed, shows them once, and goes on with the new token", async () => {
    const fresh = { webhookId: "whk_1", authToken: "tok_2", secretKey: "7e7e", rotatedAt: TRACKER.createdAt };
    const sent = await show(TrackerPage, {
      ...at,
      answers: { ...answers, "POST /api/webhook/regenerate-secret": () => json({ webhook: fresh, warning: "" }) },
    });
    await replace();
    expect(await screen.findByText("7e7e")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Send a test" }));
    const tokens = () =>
      sent.filter((one) => one.url.endsWith("/api/webhook/test")).map((one) => one.headers.get("X-Auth-Token"));
    await expect.poll(tokens, { timeout: 20_000 }).toEqual(["tok_2"]);
  });

  it("shows the new secret until one is done with it, and reads out the words alone", async () => {
    const fresh = { webhookId: "whk_1", authToken: "tok_2", secretKey: "7e7e", rotatedAt: TRACKER.createdAt };
    await show(TrackerPage, {
      ...at,
      answers: { ...answers, "POST /api/webhook/regenerate-secret": () => json({ webhook: fresh, warning: "" }) },
    });
    await replace();
    expect(await screen.findByText("7e7e")).toBeTruthy();
    const read = screen.getByRole("alert");
    expect(read.textContent).toMatch(/^Copy both now/);
    expect(within(read).queryByText("7e7e")).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "Done" }));
    expect(screen.queryByText("7e7e")).toBeNull();
    expect(screen.queryByText("tok_2")).toBeNull();
  });

  it("says that a replacement without an answer may have happened, and replaces once more with the token of now", async () => {
    let holds = "tok_1";
    const told: (string | null)[] = [];
    const keys: (string | null)[] = [];
    await show(TrackerPage, {
      ...at,
      answers: {
        ...answers,
        "GET /api/merchant/webhooks": () => json({ ...one, webhooks: [{ ...TRACKER, authToken: holds }] }),
        "POST /api/webhook/regenerate-secret": (request) => {
          keys.push(request.headers.get("Idempotency-Key"));
          const token = request.headers.get("X-Auth-Token");
          told.push(token);
          if (token !== holds) return refused(401, "UNAUTHORIZED");
          holds = `tok_${told.length + 1}`;
          if (told.length === 1) return Promise.reject(new TypeError("Failed to fetch"));
          return json({ webhook: { webhookId: "whk_1", authToken: holds, secretKey: "7e7e" }, warning: "" });
        },
      },
    });
    const { dialog, act } = await replace();
    expect(await within(dialog).findByText(/may have been replaced/)).toBeTruthy();
    await expect
      .poll(
        () => {
          if (screen.queryByText("7e7e") === null && !act.hasAttribute("data-loading")) fireEvent.click(act);
          return screen.queryByText("7e7e");
        },
        { timeout: 20_000, interval: 200 },
      )
      .not.toBeNull();
    expect(told[0]).toBe("tok_1");
    expect(told.at(-1)).toBe("tok_2");
    // A browser that repeats it by itself gets the same answer.
    expect(keys[0]).toMatch(/^[\da-f-]{36}$/);
  });

  it("goes on with the new token also when an answer with the old one was on its way", async () => {
    const fresh = { webhookId: "whk_1", authToken: "tok_2", secretKey: "7e7e", rotatedAt: TRACKER.createdAt };
    const late: (() => void)[] = [];
    let asked = 0;
    const sent = await show(TrackerPage, {
      ...at,
      answers: {
        ...answers,
        "GET /api/merchant/webhooks": () => {
          asked += 1;
          const answer = json({ ...one, webhooks: [{ ...TRACKER, authToken: "tok_1" }] });
          if (asked === 1) return answer;
          return new Promise<Response>((resolve) => {
            late.push(() => {
              resolve(answer);
            });
          });
        },
        "POST /api/webhook/update": () => json({ webhook: TRACKER }),
        "POST /api/webhook/regenerate-secret": () => json({ webhook: fresh, warning: "" }),
      },
    });
    fireEvent.click(await screen.findByRole("button", { name: "Change name and URL" }));
    const dialog = await screen.findByRole("dialog");
    fireEvent.click(within(dialog).getByRole("button", { name: "Change name and URL" }));
    await expect.poll(() => late.length, { timeout: 20_000 }).toBe(1);
    await expect.poll(() => screen.queryByRole("dialog"), { timeout: 20_000 }).toBeNull();
    await replace();
    expect(await screen.findByText("7e7e")).toBeTruthy();
    late[0]?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
    fireEvent.click(screen.getByRole("button", { name: "Send a test" }));
    const tokens = () =>
      sent.filter((each) => each.url.endsWith("/api/webhook/test")).map((each) => each.headers.get("X-Auth-Token"));
    await expect.poll(tokens, { timeout: 20_000 }).toEqual(["tok_2"]);
  });
});
