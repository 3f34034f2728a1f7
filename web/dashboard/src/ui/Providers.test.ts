import { expect, it } from "vitest";

import { ApiError } from "../api/errors";

import { makeQueryClient } from "./Providers";

it.each([
  ["OFFLINE", 3],
  ["TIMEOUT", 1],
  ["NO_ANSWER", 1],
])("what fails with %s is asked for %i times", async (code, expected) => {
  let asked = 0;
  const failed = makeQueryClient().query({
    queryKey: ["one"],
    retryDelay: 1,
    queryFn: () => {
      asked += 1;
      return Promise.reject(new ApiError(0, code, "No."));
    },
  });
  await expect(failed).rejects.toMatchObject({ code });
  expect(asked).toBe(expected);
});
