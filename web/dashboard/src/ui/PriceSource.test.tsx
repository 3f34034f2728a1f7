import { render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { chooseLanguage } from "../i18n";
import { LANGUAGES, type Language } from "../i18n/locale";

import { PriceSource } from "./PriceSource";

afterEach(async () => {
  await chooseLanguage("en");
});

it.each([
  ["kraken", "Kraken"],
  ["static", "Fixed price"],
  ["our_desk", "our_desk"],
  ["median(coingecko,kraken)", "Median of CoinGecko and Kraken"],
  ["median(coingecko,kraken,our_desk)", "Median of CoinGecko, Kraken, and our_desk"],
])("%s is told as people know it", (source, told) => {
  render(<PriceSource of={source} />);
  expect(screen.getByText(told)).toBeTruthy();
});

it.each(Object.keys(LANGUAGES) as Language[])(
  "in %s a median is told with the sources' own names",
  async (language) => {
    await chooseLanguage(language);
    const { container } = render(<PriceSource of="median(coingecko,kraken)" />);
    expect(container.textContent).toMatch(/CoinGecko.+Kraken/);
    expect(container.textContent).not.toMatch(/median\(|[_{}]/);
  },
);
