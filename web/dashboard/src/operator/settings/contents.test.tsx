import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { showOperator } from "../../testing/render";

import { SettingsPage } from "./SettingsPage";

it("a list of contents leads to every part of the page", async () => {
  const settings = DESCRIBED.operator.example("/api/admin/settings") ?? {};
  await showOperator(SettingsPage, { path: "settings", answers: { "GET /api/admin/settings": settings } });
  const links = within(await screen.findByRole("navigation", { name: "On this page" })).getAllByRole("link");
  const titles = screen.getAllByRole("heading", { level: 2 }).map((one) => one.textContent);
  expect(titles).toContain("Minimums made of fees");
  expect(links.map((one) => one.textContent)).toEqual(titles);
  const parts = links.map((one) => document.querySelector(one.getAttribute("href") ?? ""));
  expect(parts.map((one) => one?.getAttribute("aria-label"))).toEqual(titles);
});
