import { expect, it } from "vitest";

import { readRows, total } from "./rows";

const A = "0x5555555555555555555555555555555555555555";
const B = "0x7777777777777777777777777777777777777777";

it("reads rows however a spreadsheet writes them, with a heading or without", () => {
  const wanted = [
    { line: 2, toAddress: A, amount: "1.5", problem: null, isTwice: false },
    { line: 3, toAddress: B, amount: "2", problem: null, isTwice: false },
  ];
  expect(readRows(`address,amount\n${A},1.5\n${B},2\n`, 6)).toEqual(wanted);
  expect(readRows(`\uFEFFto;how much\r\n"${A}";"1.5"\r\n${B};2`, 6)).toEqual(wanted);
  expect(readRows(`${A}\t1.5`, 6)).toEqual([{ line: 1, toAddress: A, amount: "1.5", problem: null, isTwice: false }]);
});

it("reads a tag behind its address where the chain has tags, and nowhere else", () => {
  expect(readRows("rSomebody#4711,1.5\nrSomebody,2", 6, true)).toEqual([
    { line: 1, toAddress: "rSomebody", tag: "4711", amount: "1.5", problem: null, isTwice: false },
    { line: 2, toAddress: "rSomebody", amount: "2", problem: null, isTwice: false },
  ]);
  expect(readRows("rSomebody#4711,1.5", 6)[0]).toMatchObject({ toAddress: "rSomebody#4711" });
  for (const to of ["rSomebody#", "#4711", "rSomebody# 4711", "#"]) {
    expect(readRows(`${to},1`, 6, true)[0]?.problem, to).toBe("address");
  }
  // The same address with another tag is somebody else.
  expect(readRows("rA#1,1\nrA#2,1\nrA,1\nrA#1,1", 6, true).map((one) => one.isTwice)).toEqual([
    false,
    false,
    false,
    true,
  ]);
});

it("says what is wrong with a row, and guesses nothing", () => {
  const problem = (line: string) => readRows(line, 6)[0]?.problem;
  expect(problem(`${A};1,5`)).toBe("columns");
  expect(problem(A)).toBe("columns");
  expect(problem(",1")).toBe("address");
  for (const amount of ["0", "0.00", "-1", "1e5", ".5", "1.", "١", "1 000", "NaN"]) {
    expect(problem(`${A},${amount}`), amount).toBe("amount");
  }
  expect(problem(`${A},0.1234567`)).toBe("decimals");
});

it("says which rows are equal to earlier ones, which is no problem by itself", () => {
  const rows = readRows(`${A},1\n${A.toUpperCase().replace("0X", "0x")},1\n${A},2\n${B},x\n${B},x`, 6);
  expect(rows.map((one) => one.isTwice)).toEqual([false, true, false, false, false]);
  expect(readRows(`${A},12.5\n${A},12.50`, 6).map((one) => one.isTwice)).toEqual([false, true]);
  expect(rows.map((one) => one.problem)).toEqual([null, null, null, "amount", "amount"]);
});

it("adds up exactly", () => {
  expect(total(readRows(`${A},0.1\n${B},0.2`, 18), 18)).toBe("0.3");
  expect(total(readRows(`${A},99999999999999999999.000001`, 6), 6)).toBe("99999999999999999999.000001");
  expect(total([], 6)).toBe("0");
  expect(total(readRows(`${A},7`, 0), 0)).toBe("7");
});
