/** The states of pages that ask before they are answered: as they stand, while they are sent, refused, and offline. */
import { fireEvent, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { alerts, lost, never, offered, reads, READS, refusal, seen, SENTENCE, Visit, type Place } from "./visit";

export interface Form extends Place {
  readonly title: string;
  /** What is typed, by the names of the fields. */
  readonly filled: Readonly<Record<string, string>>;
  /** What sends it. */
  readonly act: string;
  /** What whoever may only read is told in its place; nothing where it is everybody's. */
  readonly reader?: string;
  /** Whether it may be sent again where no answer came. */
  readonly isRepeatable?: boolean;
}

/** What a browser without a connection does. */
const unsent: typeof lost = (request) => lost(request);

const OFFLINE = ["The gateway cannot be reached.", "OFFLINE"] as const;

export function declareForm(visit: Visit, { title, filled, act, reader, isRepeatable = false }: Form): void {
  const typed = Object.values(filled);

  it("stands there to be filled in, and is sent once at a time", async () => {
    await visit.begin(never);
    await reads(title);
    expect(offered()).toContain(act);
    fill(filled);
    send(act);
    await waitFor(() => {
      expect(button(act).disabled).toBe(true);
    });
    expect(alerts()).toEqual([]);
  });

  it.each([
    ["was refused", refusal(422, "SOMETHING_WRONG"), [SENTENCE, "SOMETHING_WRONG"]],
    ["is forbidden", refusal(403, "ROLE_NOT_ALLOWED"), [SENTENCE, "ROLE_NOT_ALLOWED"]],
    ["had no answer", lost, isRepeatable ? OFFLINE : ["It may have been done all the same", "NO_ANSWER"]],
    ["cannot be sent", unsent, OFFLINE],
  ] as const)("says why it %s, keeps what was typed, and can be sent again", async (_, answer, said) => {
    await visit.begin(answer);
    await reads(title);
    fill(filled);
    if (answer === unsent) vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
    send(act);
    await reads(...said, ...typed);
    expect(button(act).disabled).toBe(false);
  });

  if (reader === undefined) return;
  it("is nothing for whoever may only read", async () => {
    await visit.begin(never, READS);
    await reads(title, reader);
    expect(offered()).not.toContain(act);
    expect(typed.some((one) => seen().includes(one))).toBe(false);
  });
}

function fill(filled: Form["filled"]): void {
  for (const [name, value] of Object.entries(filled)) {
    const label = [...document.querySelectorAll("label")].find((one) => one.textContent.replace(" *", "") === name);
    const field = document.getElementById(label?.htmlFor ?? "");
    if (field === null) throw new Error(`There is no field that is called ${name}.`);
    fireEvent.change(field, { target: { value } });
  }
}

function button(name: string): HTMLButtonElement {
  const found = [...document.querySelectorAll("button")].find((one) => one.textContent.trim() === name);
  if (found === undefined) throw new Error(`There is no button that is called ${name}.`);
  return found;
}

function send(act: string): void {
  const { form } = button(act);
  if (form === null) throw new Error("It sends no form.");
  fireEvent.submit(form);
}
