import { render, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { Shares, Stacks } from "./Stacks";

it("says how many of each kind there were, part by part, and leaves out what there is none of", () => {
  render(
    <Stacks
      label="Payments by state"
      layers={[
        { key: "paid", label: "Paid", tone: "good" },
        { key: "failed", label: "Failed", tone: "bad" },
        { key: "overpaid", label: "Overpaid", tone: "care" },
        { key: "underpaid", label: "Underpaid", tone: "care" },
      ]}
      stacks={[
        { key: "1", label: "Monday", counts: [3, 0, 1, 0] },
        { key: "2", label: "Tuesday", counts: [1, 0, 0, 2] },
      ]}
    />,
  );
  const rows = within(screen.getByRole("table", { name: "Payments by state" })).getAllByRole("row");
  expect(rows.map((row) => row.textContent)).toEqual(["PaidOverpaidUnderpaid", "Monday310", "Tuesday102"]);
  const legend = screen.getByRole("list", { name: "Payments by state" });
  expect(
    within(legend)
      .getAllByRole("listitem")
      .map((one) => one.textContent),
  ).toEqual(["Paid 4", "Overpaid 1", "Underpaid 2"]);
  // The highest stack is as high as the drawing, and one stands on the other.
  const drawn = [...screen.getByRole("img").querySelectorAll("rect")].map((one) =>
    ["y", "height", "data-again"].map((name) => Number(one.getAttribute(name))),
  );
  expect(drawn).toEqual([
    [25, 75, 0],
    [0, 25, 0],
    [0, 0, 1],
    [75, 25, 0],
    [75, 0, 0],
    [25, 50, 1],
  ]);
});

it("draws what several have, the largest first", () => {
  render(
    <Shares
      label="By chain"
      shares={[
        { key: "a", label: "Polygon", size: 1, text: "$1" },
        { key: "b", label: "Ethereum", size: 4, text: "$4" },
      ]}
    />,
  );
  const shares = within(screen.getByRole("list", { name: "By chain" })).getAllByRole("listitem");
  expect(shares.map((one) => [one.textContent, one.querySelector("rect")?.getAttribute("width")])).toEqual([
    ["Ethereum$4", "100"],
    ["Polygon$1", "25"],
  ]);
});
