import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { json, showOperator, type Answer } from "../../testing/render";

import { SecurityPage } from "./SecurityPage";

const AUTH = "/api/admin/auth";
const SESSION = { ip: "203.0.113.7", userAgent: null, lastUsedAt: "2026-01-31T12:00:00.000Z" };

async function open(answers: Readonly<Record<string, Answer | object>>): Promise<readonly Request[]> {
  return await showOperator(SecurityPage, {
    path: "security",
    answers: {
      [`GET ${AUTH}/me`]: { success: true, operator: { permissions: [] }, recoveryCodesLeft: 9 },
      [`GET ${AUTH}/sessions`]: {
        success: true,
        sessions: [
          { ...SESSION, sessionId: "ses_1", current: true },
          { ...SESSION, sessionId: "ses_2", current: false },
        ],
      },
      ...answers,
    },
  });
}

function fill(section: HTMLElement, values: Readonly<Record<string, string>>): void {
  for (const [label, value] of Object.entries(values)) {
    fireEvent.change(within(section).getByLabelText(new RegExp(`^${label}`)), { target: { value } });
  }
}

describe("an operator's own security", () => {
  it("new recovery codes are shown once the old ones are given up knowingly", async () => {
    const bodies: unknown[] = [];
    await open({
      [`POST ${AUTH}/recovery-codes`]: async (request) => {
        bodies.push(await request.json());
        return json({ success: true, recoveryCodes: ["4k2m7-qvx4d"] });
      },
    });
    const section = screen.getByRole("region", { name: "Second factor" });
    await within(section).findByText("9 recovery codes left");
    fill(section, { Password: "a long password", Code: " 123456 " });
    fireEvent.click(within(section).getByRole("button", { name: "New recovery codes" }));
    const dialog = await screen.findByRole("dialog", { name: "Make new recovery codes?" });
    expect(bodies).toEqual([]);
    fireEvent.click(within(dialog).getByRole("button", { name: "New recovery codes" }));
    await within(section).findByText("4k2m7-qvx4d");
    expect(bodies).toEqual([{ password: "a long password", totpCode: "123456" }]);
  });

  it("another session is ended, and this one is not offered", async () => {
    const ended: string[] = [];
    await open({
      [`DELETE ${AUTH}/sessions/ses_2`]: (request) => {
        ended.push(request.url);
        return json({ success: true });
      },
    });
    const section = screen.getByRole("region", { name: "Sessions" });
    await within(section).findByText("This one");
    const acts = within(section).getAllByRole("button", { name: "End" });
    expect(acts).toHaveLength(1);
    for (const act of acts) fireEvent.click(act);
    await waitFor(() => {
      expect(ended).toHaveLength(1);
    });
  });

  it("a new password wants a code, and begins a session", async () => {
    const bodies: unknown[] = [];
    await open({
      [`POST ${AUTH}/password`]: async (request) => {
        bodies.push(await request.json());
        return json({ success: true, accessToken: "another", expiresIn: 900 });
      },
    });
    const section = screen.getByRole("region", { name: "Password" });
    expect(within(section).getByLabelText<HTMLInputElement>(/^Code/).required).toBe(true);
    fill(section, { "Current password": "a long password", "New password": "a longer password", Code: "123456" });
    fireEvent.click(within(section).getByRole("button", { name: "Change the password" }));
    await within(section).findByText("The password was changed, and every other session ended.");
    expect(bodies).toEqual([
      { currentPassword: "a long password", newPassword: "a longer password", totpCode: "123456" },
    ]);
  });
});
