import { useDebouncedValue } from "@mantine/hooks";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import type { Finder } from "../ui/Palette";

import { api, unwrap, useWords } from "./api";
import { usePermitted } from "./queries";
import { pageOf } from "./records/found";

const TYPING_MS = 150;
/** Fewer letters name a page, and no record. */
const LENGTH_MIN = 3;

function foundQuery(q: string) {
  return queryOptions({
    queryKey: ["search", q],
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/admin/search", { params: { query: { q } }, signal }))).found,
  });
}

/** Finds what a text names over all merchants: an id, an address, a transaction, an order, an e-mail address. */
export function useFinder(): Finder {
  const { t, i18n } = useWords();
  const navigate = useNavigate();
  const mayRead = usePermitted("records.read");
  const [typed, setTyped] = useState("");
  const wanted = typed.trim();
  const [asked] = useDebouncedValue(wanted, TYPING_MS);
  const isNamed = mayRead && wanted.length >= LENGTH_MIN;
  const isAsked = isNamed && asked === wanted;
  const { data = [], isFetching, isError } = useQuery({ ...foundQuery(asked), enabled: isAsked });
  const found = isAsked ? data : [];
  return {
    onTyped: setTyped,
    isLooking: isNamed && (!isAsked || isFetching),
    hasFailed: isAsked && isError && !isFetching,
    found: found.map((one) => {
      const status = `common:status.${one.status ?? ""}`;
      const said = i18n.exists(status) ? t(status as "common:status.paid") : null;
      return {
        id: `found-${one.kind}-${one.id}`,
        label: [t(`kinds.${one.kind}`), one.id, one.merchantName, said].filter(Boolean).join(" · "),
        run: () => void navigate(pageOf(one)),
      };
    }),
  };
}
