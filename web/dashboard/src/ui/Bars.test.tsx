import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { Bars } from "./Bars";
import { endOfAxis } from "./Chart";

it.each([
  [0, 1],
  [1, 1],
  [3, 4],
  [11, 20],
  [61, 80],
  [100, 100],
  [4594.07, 6000],
  [0.03, 0.04],
])("ends the axis of what is %d at most at %d", (most, end) => {
  expect(endOfAxis(most)).toBeCloseTo(end, 10);
});

it("draws each part as high as its line says, and says so in a table", () => {
  const bar = (key: string, size: number) => ({ key, label: `Day ${key}`, size, text: `$${String(size)}` });
  render(<Bars label="What came in" bars={[bar("1", 30), bar("2", 0)]} onAxis={(size) => `about ${String(size)}`} />);
  expect(screen.getAllByText(/^about/).map((one) => one.textContent)).toEqual(["about 40", "about 20", "about 0"]);
  const heights = [...screen.getByRole("img").querySelectorAll("rect")].map((one) => one.getAttribute("height"));
  expect(heights).toEqual(["75", "0"]);
  expect(screen.getAllByRole("row").map((row) => row.textContent)).toEqual(["Day 1$30", "Day 2$0"]);
});
