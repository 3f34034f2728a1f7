import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { show } from "../../testing/render";

import { SandboxPage } from "./SandboxPage";

it.each([
  ["offers nothing of the sandbox in a live project", "live", ["read", "payments"], /This project is live/],
  ["offers nothing of the sandbox to whoever may not use it", "sandbox", ["read"], /Your role does not permit this/],
] as const)("the page %s", async (_, mode, permissions, says) => {
  const sent = await show(SandboxPage, { path: "sandbox", answers: {}, mode, permissions: [...permissions] });
  expect(screen.getByText(says)).toBeTruthy();
  expect(screen.queryAllByRole("button")).toEqual([]);
  if (mode === "live") expect(sent).toEqual([]);
});
