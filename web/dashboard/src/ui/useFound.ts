import { useDebouncedValue } from "@mantine/hooks";
import { useQuery, type UseQueryOptions } from "@tanstack/react-query";
import { useState } from "react";

import type { Finder } from "./Palette";

const TYPING_MS = 150;
/** Fewer letters name a page, and no record. */
const LENGTH_MIN = 3;

interface Found<Record> extends Omit<Finder, "found"> {
  readonly found: readonly Record[];
}

/** Ask what a text names while it is typed. Nothing is asked of whoever may not, and nothing of an older text shown. */
export function useFound<Record>(
  queryOf: (q: string) => UseQueryOptions<Record[], Error, Record[], string[]>,
  mayAsk: boolean,
): Found<Record> {
  const [typed, setTyped] = useState("");
  const wanted = typed.trim();
  const [asked] = useDebouncedValue(wanted, TYPING_MS);
  const isNamed = mayAsk && wanted.length >= LENGTH_MIN;
  const isAsked = isNamed && asked === wanted;
  const { data = [], isFetching, isError } = useQuery({ ...queryOf(asked), enabled: isAsked });
  return {
    onTyped: setTyped,
    isLooking: isNamed && (!isAsked || isFetching),
    hasFailed: isAsked && isError && !isFetching,
    found: isAsked ? data : [],
  };
}
