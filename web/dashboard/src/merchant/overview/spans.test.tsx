import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { json, show } from "../../testing/render";

import { OverviewPage } from "./OverviewPage";

const FOUND = DESCRIBED.merchant.example("/api/dashboard/overview") as { readonly turnover: object };

it("says of figures of another time that they are not the ones that were asked for, until those have come", async () => {
  let answer: (response: Response) => void = () => undefined;
  const turnover = (fiat: string) => json({ ...FOUND, turnover: { ...FOUND.turnover, fiat } });
  await show(OverviewPage, {
    path: "overview",
    answers: {
      "GET /api/dashboard/overview": ({ url }) =>
        url.includes("from=")
          ? new Promise((resolve) => {
              answer = resolve;
            })
          : turnover("111.00"),
    },
  });
  const figure = await screen.findByText("$111.00");
  const busy = () => figure.closest("[aria-busy]")?.getAttribute("aria-busy");
  expect(busy()).toBe("false");
  fireEvent.click(screen.getByText("7 days"));
  await screen.findByText("Loading");
  expect(busy()).toBe("true");
  // What does not depend on the time is as true as before.
  expect(screen.getByRole("region", { name: "Balances" }).closest("[aria-busy]")).toBeNull();
  answer(turnover("22.00"));
  await screen.findByText("$22.00");
  expect(screen.queryByText("Loading")).toBeNull();
});
