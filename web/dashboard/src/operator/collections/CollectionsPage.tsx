import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { CsvButton } from "../../ui/CsvButton";
import { timesOf } from "../../ui/days";
import { DaysFilter, SelectFilter } from "../../ui/Filters";
import { numbers } from "../../ui/format";
import { listed, type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { newestFirst, useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { api, operatorSession, unwrap, useWords, type Operations, type Schemas } from "../api";
import { ChainFilter } from "../chains/ChainFilter";
import { MerchantLink } from "../merchants/MerchantLink";
import { ROWS } from "../queries";
import { IntentState } from "../queue/IntentState";

type Collection = Schemas["CollectionView"];
type Asked = NonNullable<Operations["listAllCollections"]["parameters"]["query"]>;

const PATH = "/api/admin/collections";
const FILTERS = ["mode", "chain", "from", "until", "sort"] as const;
const MODES = ["live", "sandbox"] as const;

/** What was brought from addresses to main wallets, and what each of these transfers has cost. */
export function CollectionsPage() {
  const { t, i18n } = useWords();
  const number = numbers(i18n.language);
  const search = useListSearch(FILTERS);
  const { from, until, ...filters } = search.filters;
  const asked = { ...filters, ...timesOf(from, until) };
  const query = useQuery({
    queryKey: ["collections", asked, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const params = { query: { limit: ROWS, ...asked, page: search.page } as Asked }; // the API checks it
      const answer = await unwrap(api.GET(PATH, { params, signal }));
      return listed(answer.collections, answer);
    },
  });
  const columns: readonly Column<Collection>[] = [
    {
      id: "created",
      title: t("common:payments.created"),
      sort: "createdAt",
      cell: (one) => <When at={one.createdAt} />,
    },
    { id: "state", title: t("record.state"), cell: (one) => <IntentState state={one.status} /> },
    { id: "merchant", title: t("record.merchant"), cell: (one) => <MerchantLink of={one} /> },
    {
      id: "from",
      title: `${t("record.from")} · ${t("record.tx")}`,
      cell: (one) => (
        <>
          <div>
            <Address value={one.fromAddress} />
          </div>
          {one.txHash !== null && <Address value={one.txHash} />}
        </>
      ),
    },
    {
      id: "deposits",
      title: t("nav.deposits"),
      atEnd: true,
      cell: (one) => <span className="number">{number.format(one.deposits)}</span>,
    },
    {
      id: "fee",
      title: t("queue.fee"),
      atEnd: true,
      cell: (one) => <Amount value={one.fee.amount} token={one.fee.token} />,
    },
    {
      id: "amount",
      title: t("record.amount"),
      atEnd: true,
      cell: (one) => (
        <>
          <Amount value={one.amount} token={one.token} />
          <div className="muted">
            <ChainName of={one.chain} />
          </div>
        </>
      ),
    },
  ];
  return (
    <ListPage
      title={t("nav.collections")}
      lead={t("collections.lead")}
      search={search}
      csv={<CsvButton path={PATH} query={asked} name="collections" session={operatorSession} />}
      acts={<Link to="/uncollected">{t("nav.uncollected")}</Link>}
      filters={
        <>
          <SelectFilter
            label={t("common:mode.title")}
            value={filters.mode ?? "live"}
            isRequired
            options={MODES.map((one) => ({ value: one, label: t(`common:mode.${one}`) }))}
            onFilter={(mode) => {
              search.filter({ mode: mode === "live" ? "" : mode });
            }}
          />
          <ChainFilter value={filters.chain} onFilter={search.set.chain} />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.collectionId}
      {...newestFirst(search)}
      none={t("collections.none")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}
