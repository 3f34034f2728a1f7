import { describe, expect, it } from "vitest";

import {
  addressParts,
  dotAsThousands,
  shortId,
  showAbout,
  showAge,
  showAmount,
  showFiat,
  showFirst,
  showList,
  showPercent,
  showTook,
} from "./format";

describe("ids", () => {
  it("are shortened to what they are of and their ends", () => {
    expect(shortId("pay_cyn9c4khcc2nwqwfx10amazw98")).toBe("pay_cyn9…zw98");
    expect(shortId("payout:po_b6414a1tmhd3sj6x65b637fjrr")).toBe("payout:po_b641…fjrr");
    expect(shortId("pln_standard")).toBe("pln_standard");
  });
});

describe("amounts", () => {
  it("with a dot that may be meant to group thousands are told apart, where a comma parts decimals", () => {
    expect(dotAsThousands(" 1.000 ", "de")).toEqual({ amount: "1", thousands: "1.000" });
    expect(dotAsThousands("12.350", "de")).toEqual({ amount: "12,35", thousands: "12.350" });
    expect(dotAsThousands("999.125", "tr")).toEqual({ amount: "999,125", thousands: "999.125" });
    for (const other of ["1000", "1.5", "1.0000", "0.125", "1.000.000", "1,000", "1234.567", ""]) {
      expect(dotAsThousands(other, "de")).toBeNull();
    }
    for (const language of ["en", "ja", "zh", "ar"]) expect(dotAsThousands("1.000", language)).toBeNull();
  });

  it("are grouped as the language does, and keep every digit up to the eighth decimal", () => {
    expect(showAmount("1234567.12345678", "en")).toEqual({ text: "1,234,567.12345678", isCut: false });
    expect(showAmount("1234567.5", "de").text).toBe("1.234.567,5");
    expect(showAmount("1234.5", "ar-EG").text).toBe("١٬٢٣٤٫٥");
    expect(showAmount("1234.5", "ar").text).toBe("1,234.5");
  });

  it("are cut and never rounded", () => {
    expect(showAmount("0.999999999999999999", "en")).toEqual({ text: "0.99999999", isCut: true });
  });

  it("may be larger than any number of JavaScript", () => {
    expect(showAmount("123456789012345678901234567890", "en").text).toBe("123,456,789,012,345,678,901,234,567,890");
  });

  it("below zero have a minus", () => {
    expect(showAmount("-5.10", "en").text).toBe("−5.10");
    expect(showFiat("-5.1", "usd", "en")).toBe("−$5.10");
    expect(showFiat("-5.1", "eur", "de")).toBe("−5,10\u00a0€");
  });

  it("above zero that have a plus keep it", () => {
    expect(showAmount("+1234.123456789", "de")).toEqual({ text: "+1.234,12345678", isCut: true });
  });

  it("that are none are shown as they are", () => {
    expect(showAmount("1e5", "en").text).toBe("1e5");
  });

  it("of money have their currency's decimals", () => {
    expect(showFiat("49.9", "eur", "en")).toBe("€49.90");
    expect(showFiat("500", "jpy", "en")).toBe("¥500");
  });

  it("of money keep the order of their currency's letters among Arabic words", () => {
    expect(showFiat("5.5", "usd", "ar")).toMatch(/5[.٫]50\u00a0US\$\u200e$/);
    expect(showAbout(6_000, "usd", "ar")).toMatch(/US\$\u200e$/);
  });

  it("of money have every digit that was sent", () => {
    expect(showFiat("12.34", "huf", "en")).toBe("HUF\u00a012.34");
    expect(showFiat("5.50", "lbp", "en")).toMatch(/^LBP\u00a05\.50?$/);
    expect(showFiat("1234.567", "iqd", "en")).toBe("IQD\u00a01,234.567");
    expect(showFiat("0.00000001", "usd", "en")).toBe("$0.00000001");
  });
});

describe("the axis of a chart", () => {
  it("says small amounts as well as large ones", () => {
    const ends = [0, 0.02, 0.5, 3, 80, 6_000, 150_000, 2_500_000];
    const said = ends.map((one) => showAbout(one, "usd", "en"));
    expect(said).toEqual(["$0", "$0.02", "$0.5", "$3", "$80", "$6K", "$150K", "$2.5M"]);
  });
});

describe("shares and lists", () => {
  it("are written as the language does, and a share keeps all of its digits", () => {
    expect(showPercent("83.3333", "de")).toBe("83,3333\u00a0%");
    expect(showPercent("0.5", "tr")).toBe("%0,5");
    expect(showList(["ethereum", "tron"], "en")).toBe("ethereum, tron");
    expect(showList(["ethereum", "tron"], "ja")).toBe("ethereum、tron");
  });

  it("have no 'and' before the last where a sentence says that there are others", () => {
    expect(showList(["1", "2", "3"], "de")).toBe("1, 2 und 3");
    expect(showFirst(["1", "2", "3"], "de")).toBe("1, 2, 3");
    expect(showFirst(["1", "2", "3"], "zh")).toBe("1、2、3");
    expect(showFirst(["1"], "de")).toBe("1");
  });
});

describe("how long something took", () => {
  it("is said in the largest unit that it fills", () => {
    const took = [7, 999, 4_200, 59_960, 61_000, 3_599_000, 5_400_000, 100_000_000].map((one) => showTook(one, "en"));
    const written = ["7 ms", "999 ms", "4.2 seconds", "1 minute", "1 minute", "1 hour", "1.5 hours", "1.2 days"];
    expect(took).toEqual(written);
    expect(showTook(4_200, "de")).toBe("4,2 Sekunden");
  });
});

describe("times", () => {
  const now = Date.parse("2026-01-10T12:00:00Z");

  it("are told by their age within a week, and by their date behind it", () => {
    expect(showAge("2026-01-10T11:57:01Z", "en", now)).toBe("2 minutes ago");
    expect(showAge("2026-01-10T14:00:00Z", "en", now)).toBe("in 2 hours");
    expect(showAge("2026-01-01T12:00:00Z", "en", now)).toBe("Jan 1, 2026");
  });

  it("are counted in days of the calendar where the reader is", () => {
    const noon = new Date(2026, 0, 10, 12).getTime();
    const ago = (hours: number) => showAge(new Date(noon - hours * 3_600_000).toISOString(), "en", noon);
    expect([23, 24, 36, 37, 47, 60, 61].map(ago)).toEqual([
      "23 hours ago",
      "yesterday",
      "yesterday",
      "2 days ago",
      "2 days ago",
      "2 days ago",
      "3 days ago",
    ]);
    expect([-24, -35, -37].map(ago)).toEqual(["tomorrow", "tomorrow", "in 2 days"]);
  });
});

describe("addresses", () => {
  it("are split where people compare them", () => {
    const parts = addressParts("0x71C7656EC7ab88b098defB751B7401B5f6d8976F");
    expect(parts).toMatchObject({ head: "0x71C7", tail: "d8976F" });
    expect(parts.head + parts.middle + parts.tail).toBe("0x71C7656EC7ab88b098defB751B7401B5f6d8976F");
  });
});
