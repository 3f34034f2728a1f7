import { queryOptions } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import type { Finder } from "../ui/Palette";
import { useFound } from "../ui/useFound";

import { api, unwrap, useWords } from "./api";
import { usePermitted } from "./queries";
import { pageOf } from "./records/found";

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
  const { found, ...state } = useFound(foundQuery, mayRead);
  return {
    ...state,
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
