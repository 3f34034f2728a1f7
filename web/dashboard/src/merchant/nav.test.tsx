import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { show } from "../testing/render";

import { useNav } from "./nav";
import { useProject } from "./project";

function Page() {
  const items = useNav(useProject()).flatMap((group) => group.items);
  return (
    <>
      <h1>Navigation</h1>
      {items.map((item) => (
        <a key={item.to} href={item.to}>
          {item.label}
        </a>
      ))}
    </>
  );
}

it.each([
  ["offers the audit log to whoever may read it", ["read", "audit.read"] as const, 1],
  ["does not offer the audit log to anybody else", ["read"] as const, 0],
])("the navigation %s", async (_, permissions, expected) => {
  await show(Page, { path: "overview", answers: {}, permissions: [...permissions] });
  expect(screen.getByRole("link", { name: "Overview" })).toBeTruthy();
  expect(screen.queryAllByRole("link", { name: "Audit log" })).toHaveLength(expected);
});
