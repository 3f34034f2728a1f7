import { Button } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { CsvButton } from "../../ui/CsvButton";
import { timesOf } from "../../ui/days";
import { DaysFilter, SelectFilter, TextFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Short } from "../../ui/Short";
import { newestFirst, useListSearch } from "../../ui/search";
import { Chip } from "../../ui/Status";
import { When } from "../../ui/When";
import { operatorSession, useWords } from "../api";
import { ChainFilter } from "../chains/ChainFilter";
import { MerchantLink } from "../merchants/MerchantLink";
import { MerchantFilter } from "../merchants/MerchantSelect";

import type { Filters as Asked, Kind, Owned } from "./kinds";

const FILTERS = ["search", "status", "chain", "mode", "merchant", "project", "from", "until", "sort"] as const;
const MODES = ["live", "sandbox"] as const;

/** All of one kind, of all merchants, newest first. */
export function RecordList<Row extends Owned>({ kind }: { readonly kind: Kind<Row> }) {
  const { t, i18n } = useWords();
  const search = useListSearch(FILTERS);
  const { from, until, ...filters } = search.filters;
  const asked = { ...filters, ...timesOf(from, until) };
  const title = t(`nav.${kind.name}`);
  const query = useQuery({
    queryKey: [kind.name, "list", asked, search.page],
    placeholderData: keepPreviousData,
    // What stands in the address is checked by the API, which says what is wrong with it.
    queryFn: ({ signal }) => kind.list({ ...asked, page: search.page } as Asked, signal),
  });
  const columns: readonly Column<Row>[] = [
    {
      id: "created",
      title: t("common:payments.created"),
      sort: "createdAt",
      cell: (row) => <When at={row.createdAt} />,
    },
    { id: "merchant", title: t("record.merchant"), cell: (row) => <Merchant row={row} /> },
    ...kind.columns((word) => t(`record.${word}`)),
  ];
  return (
    <ListPage
      title={title}
      search={search}
      filters={
        <>
          <TextFilter label={t("record.search")} value={filters.search} onFilter={search.set.search} />
          <SelectFilter
            label={t("record.status")}
            value={filters.status}
            options={kind.statuses.map((one) => {
              const key = `common:status.${one}`;
              return { value: one, label: i18n.exists(key) ? t(key as "common:status.paid") : one };
            })}
            onFilter={search.set.status}
          />
          {kind.name !== "accounts" && <ChainFilter value={filters.chain} onFilter={search.set.chain} />}
          <SelectFilter
            label={t("common:mode.title")}
            value={filters.mode}
            options={MODES.map((one) => ({ value: one, label: t(`common:mode.${one}`) }))}
            onFilter={search.set.mode}
          />
          <MerchantFilter value={filters.merchant} onFilter={search.set.merchant} />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
          {filters.project !== undefined && (
            <Button
              variant="default"
              onClick={() => {
                search.filter({ project: "" });
              }}
            >
              {t("record.allProjects")}
            </Button>
          )}
        </>
      }
      csv={<CsvButton path={`/api/admin/${kind.name}`} query={asked} name={kind.name} session={operatorSession} />}
      columns={columns}
      query={query}
      rowKey={kind.idOf}
      href={(row) => `/${kind.name}/${kind.idOf(row)}`}
      {...newestFirst(search)}
      none={t("record.none")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}

/** Whose it is. What is no merchant's is the gateway's own. */
export function Merchant({ row }: { readonly row: Owned }) {
  const { t } = useWords();
  return (
    <>
      <MerchantLink of={row} />
      <div className="row muted">
        {row.projectName !== null && row.projectName !== row.merchantName && <Short text={row.projectName} />}
        {row.mode === "sandbox" && <Chip tone="calm">{t("common:mode.sandbox")}</Chip>}
      </div>
    </>
  );
}
