import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { CsvButton } from "../../ui/CsvButton";
import { SelectFilter, TextFilter } from "../../ui/Filters";
import { listed, type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { None } from "../../ui/None";
import { newestFirst, useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { api, operatorSession, unwrap, useWords, type Operations } from "../api";
import { plansQuery } from "../plans/queries";
import { ROWS, usePermitted } from "../queries";

import { AddMerchant } from "./AddMerchant";
import type { MerchantRow } from "./queries";
import { Standing } from "./Standing";

const FILTERS = ["search", "isLive", "isSuspended", "plan", "sort"] as const;
type Asked = NonNullable<Operations["listMerchants"]["parameters"]["query"]>;

/** All merchants, the newest first, found by whatever a person knows of them. */
export function MerchantsPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const plans = useQuery({ ...plansQuery, enabled: usePermitted("plans.read") });
  const query = useQuery({
    queryKey: ["merchant", "list", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      // What stands in the address is checked by the API, which says what is wrong with it.
      const asked = { limit: ROWS, ...filters, page: search.page } as unknown as Asked;
      const answer = await unwrap(api.GET("/api/admin/merchants", { params: { query: asked }, signal }));
      return listed(answer.merchants, answer);
    },
  });
  const columns: readonly Column<MerchantRow>[] = [
    {
      id: "name",
      title: t("record.merchant"),
      cell: (one) => (
        <>
          <div>{one.name}</div>
          <div className="muted">{one.email}</div>
        </>
      ),
    },
    { id: "standing", title: t("record.state"), cell: (one) => <Standing of={one} /> },
    { id: "plan", title: t("merchants.plan"), cell: (one) => one.planName },
    {
      id: "active",
      title: t("merchants.lastActive"),
      cell: (one) => (one.lastActiveAt === null ? <None /> : <When at={one.lastActiveAt} />),
    },
    {
      id: "created",
      title: t("common:payments.created"),
      sort: "createdAt",
      cell: (one) => <When at={one.createdAt} />,
    },
    {
      id: "projects",
      title: t("merchants.projects"),
      atEnd: true,
      cell: (one) => <span className="number">{one.projects}</span>,
    },
    {
      id: "members",
      title: t("merchants.members"),
      atEnd: true,
      cell: (one) => <span className="number">{one.members}</span>,
    },
  ];
  return (
    <ListPage
      title={t("nav.merchants")}
      lead={t("merchants.lead")}
      search={search}
      csv={<CsvButton path="/api/admin/merchants" query={filters} name="merchants" session={operatorSession} />}
      create={<AddMerchant />}
      filters={
        <>
          <TextFilter label={t("merchants.search")} value={filters.search} onFilter={search.set.search} />
          <SelectFilter
            label={t("merchants.liveMode")}
            value={filters.isLive}
            options={[
              { value: "true", label: t("merchants.live") },
              { value: "false", label: t("merchants.notLive") },
            ]}
            onFilter={search.set.isLive}
          />
          <SelectFilter
            label={t("record.state")}
            value={filters.isSuspended}
            options={[
              { value: "true", label: t("merchants.suspended") },
              { value: "false", label: t("merchants.notSuspended") },
            ]}
            onFilter={search.set.isSuspended}
          />
          <SelectFilter
            label={t("merchants.plan")}
            value={filters.plan}
            options={(plans.data?.plans ?? []).map((one) => ({ value: one.planId, label: one.name }))}
            onFilter={search.set.plan}
          />
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.merchantId}
      href={(one) => `/merchants/${one.merchantId}`}
      {...newestFirst(search)}
      none={t("merchants.none")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}
