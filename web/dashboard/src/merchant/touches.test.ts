import { describe, expect, it } from "vitest";

import { touches } from "./touches";

describe("a change", () => {
  it("touches what shows it, in its own project alone", () => {
    const change = { kind: "payment", id: "pay_1", projectId: "prj_1" };
    expect(touches(["project", "prj_1", "payments", { page: 1 }], change)).toBe(true);
    expect(touches(["project", "prj_1", "payment", "pay_2"], change)).toBe(true);
    expect(touches(["project", "prj_2", "payments", { page: 1 }], change)).toBe(false);
    expect(touches(["project", "prj_1", "wallet"], change)).toBe(false);
    expect(touches(["project", "prj_1", "overview", "month"], change)).toBe(true);
    expect(touches(["me"], change)).toBe(false);
  });

  it("of the team touches its lists, whatever project is shown", () => {
    expect(touches(["members"], { kind: "member", id: "mem_1" })).toBe(true);
    expect(touches(["me"], { kind: "member", id: "mem_1" })).toBe(true);
    expect(touches(["invitations"], { kind: "invitation", id: "inv_1" })).toBe(true);
    expect(touches(["invitations"], { kind: "member", id: "mem_1" })).toBe(false);
  });

  it("of what is sent touches what is brought into the wallet, and not what is in it", () => {
    const change = { kind: "collection", id: "", mode: "live" };
    expect(touches(["project", "prj_1", "collections"], change)).toBe(true);
    expect(touches(["project", "prj_1", "wallet"], change)).toBe(false);
  });

  it("touches every project where it belongs to none, and nothing where nobody knows its kind", () => {
    expect(touches(["project", "prj_1", "wallet"], { kind: "balance" })).toBe(true);
    expect(touches(["project", "prj_1", "wallet"], { kind: "comet" })).toBe(false);
  });
});
