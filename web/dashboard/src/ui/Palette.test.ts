import { expect, it } from "vitest";

import { matching, type Command } from "./Palette";

const command = (label: string, keywords = ""): Command => ({ id: label, label, keywords, run: () => undefined });
const commands = [command("New payment", "invoice"), command("Payments"), command("Sign out")];

it("finds commands by every word, in their names and other words for them", () => {
  expect(matching(commands, "pay").map((one) => one.label)).toEqual(["Payments", "New payment"]);
  expect(matching(commands, "invoice new").map((one) => one.label)).toEqual(["New payment"]);
  expect(matching(commands, "nothing like it")).toEqual([]);
});

it("shows all where nothing was typed", () => {
  expect(matching(commands, " ")).toHaveLength(3);
});
