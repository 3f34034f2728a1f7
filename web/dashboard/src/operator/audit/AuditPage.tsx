import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { listed } from "../../ui/List";
import { None } from "../../ui/None";
import { useListSearch } from "../../ui/search";
import { askedOf, Trail, TRAIL_FILTERS } from "../../ui/Trail";
import { api, operatorSession, unwrap, useWords, type Operations } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";
import { MerchantFilter } from "../merchants/MerchantSelect";
import { ROWS } from "../queries";
import { usePageOfId } from "../records/found";

import { Verification } from "./Verification";

type Asked = NonNullable<Operations["listAuditEntries"]["parameters"]["query"]>;

const PATH = "/api/admin/audit";
const FILTERS = [...TRAIL_FILTERS, "merchant"] as const;

/** Who did what, from where, and when. Nothing is ever taken out of it. */
export function AuditPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const pageOf = usePageOfId();
  const query = useQuery({
    queryKey: ["audit", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      // What stands in the address is checked by the API, which says what is wrong with it.
      const asked = { limit: ROWS, ...askedOf(filters), page: search.page } as Asked;
      const answer = await unwrap(api.GET(PATH, { params: { query: asked }, signal }));
      return { ...listed(answer.entries, answer), verification: answer.verification };
    },
  });
  return (
    <Trail
      lead={t("audit.lead")}
      head={query.data !== undefined && <Verification last={query.data.verification} />}
      path={PATH}
      session={operatorSession}
      search={search}
      filters={<MerchantFilter value={filters.merchant} onFilter={search.set.merchant} />}
      query={query}
      pageOf={pageOf}
      whose={{
        id: "whose",
        title: t("record.merchant"),
        cell: (one) => (
          <>
            <MerchantLink of={one} none={<None />} />
            <div className="muted">{one.projectName}</div>
          </>
        ),
      }}
      rowKey={(one) => one.entryId}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}
