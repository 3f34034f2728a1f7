import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { listed } from "../../ui/List";
import { useListSearch } from "../../ui/search";
import { Trail } from "../../ui/Trail";
import { api, operatorSession, unwrap, useWords, type Operations } from "../api";
import { ROWS } from "../queries";

import { Verification } from "./Verification";

type Asked = NonNullable<Operations["listAuditEntries"]["parameters"]["query"]>;

const PATH = "/api/admin/audit";
const TEXTS = ["actor", "merchant", "subject", "address", "action"] as const;
const FILTERS = ["actorKind", ...TEXTS, "sort"] as const;

/** Who did what, from where, and when. Nothing is ever taken out of it. */
export function AuditPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const query = useQuery({
    queryKey: ["audit", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      // What stands in the address is checked by the API, which says what is wrong with it.
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked;
      const answer = await unwrap(api.GET(PATH, { params: { query: asked }, signal }));
      return { ...listed(answer.entries, answer), verification: answer.verification };
    },
  });
  const isFiltered = FILTERS.some((name) => name !== "sort" && filters[name] !== undefined);
  return (
    <Trail
      lead={t("audit.lead")}
      head={query.data !== undefined && <Verification last={query.data.verification} />}
      path={PATH}
      session={operatorSession}
      search={search}
      texts={TEXTS}
      query={query}
      whose={{
        id: "whose",
        title: t("record.merchant"),
        cell: (one) => (
          <>
            <div>{one.merchantName ?? one.merchantId ?? "–"}</div>
            <div className="muted">{one.projectName}</div>
          </>
        ),
      }}
      rowKey={(one) => one.entryId}
      empty={t(isFiltered ? "record.noneFiltered" : "common:trail.none")}
    />
  );
}
