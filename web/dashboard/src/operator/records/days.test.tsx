import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { showOperator } from "../../testing/render";

import { Accounts, Payouts } from "./pages";

it.each([
  ["payouts", Payouts, "Payouts"],
  ["accounts", Accounts, "Accounts"],
] as const)("%s are asked for between days, which stand in the address", async (name, Page, title) => {
  const path = `/api/admin/${name}`;
  const sent = await showOperator(Page, {
    path: name,
    at: `${name}?from=2026-01-01`,
    answers: { [`GET ${path}`]: DESCRIBED.operator.example(path) ?? {} },
  });
  await screen.findByRole("table", { name: title });
  fireEvent.change(screen.getByLabelText("Until"), { target: { value: "2026-01-31" } });
  await waitFor(() => {
    const last = sent.filter((one) => new URL(one.url).pathname === path).at(-1);
    expect(Object.fromEntries(new URL(last?.url ?? "").searchParams)).toEqual({
      limit: "25",
      page: "1",
      from: new Date(2026, 0, 1).toISOString(),
      to: new Date(2026, 1, 1).toISOString(),
    });
  });
});
