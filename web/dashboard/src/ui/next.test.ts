import { defaultStringifySearch } from "@tanstack/react-router";
import { expect, it } from "vitest";

import { destination, readNext } from "./next";

it("leads to a page of ours and never to another site's", () => {
  expect(readNext({ next: "/prj_1/payments?page=2" })).toEqual({ next: "/prj_1/payments?page=2" });
  for (const evil of ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", 7]) {
    expect(readNext({ next: evil })).toEqual({});
  }
});

it("keeps what the address said", () => {
  expect(destination("/prj_1/payments?status=paid&page=2")).toEqual({
    to: "/prj_1/payments",
    search: { status: "paid", page: 2 },
  });
  expect(destination(undefined)).toEqual({ to: "/", search: {} });
});

it("keeps a filter as the router wrote it", () => {
  const filters = { orderId: "123", amount: "25", isActive: "true", customer: '"quoted"', page: 2 };
  expect(destination(`/prj_1/payments${defaultStringifySearch(filters)}`).search).toEqual(filters);
});
