import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { timesOf } from "../../ui/days";
import { DaysFilter, SelectFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { Meaning } from "../../ui/Meaning";
import { chosenOf } from "../../ui/options";
import { ListPage } from "../../ui/ListPage";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { useCoinTokens } from "../coins/queries";
import { ProjectCsv } from "../ProjectCsv";
import { useChainOptions, usePermitted, useProjectId } from "../project";

import { isMinimum, PAYOUT_STATUSES, payoutsQuery, type Payout } from "./queries";

const FILTERS = ["status", "chain", "token", "from", "until", "batchId", "sort"] as const;
const SORTS = ["-createdAt", "createdAt"] as const;

/** A project's payouts, newest first. */
export function PayoutList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, chain, token, from, until, batchId, sort } = search.filters;
  const chains = useChainOptions();
  const tokens = useCoinTokens();
  const asked = {
    ...chosenOf("status", PAYOUT_STATUSES, status),
    ...(chain === undefined ? {} : { chain }),
    ...(token === undefined ? {} : { token }),
    ...timesOf(from, until),
    ...(batchId === undefined ? {} : { batchId }),
    ...chosenOf("sort", SORTS, sort),
  };
  const query = useQuery(payoutsQuery(projectId, { page: search.page, ...asked }));
  const columns: readonly Column<Payout>[] = [
    { id: "created", title: t("payments.created"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "kind", title: t("statement.type"), cell: (one) => <Meaning of="kind" code={one.kind} /> },
    { id: "to", title: t("payouts.to"), cell: (one) => <Address value={one.toAddress} /> },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    {
      id: "amount",
      title: t("payments.amount"),
      atEnd: true,
      cell: (one) => (
        <>
          {isMinimum(one) && <span className="muted">{t("exchange.atLeastOf")} </span>}
          <Amount value={one.amount} token={one.token} />
        </>
      ),
    },
  ];
  const create = usePermitted("payouts") && (
    <Button component={Link} to={`/${projectId}/payouts/new`}>
      {t("payouts.new")}
    </Button>
  );
  return (
    <ListPage
      title={t("payouts.title")}
      {...(batchId === undefined ? {} : { lead: t("payouts.ofBatch", { id: batchId }) })}
      search={search}
      filters={
        <>
          <SelectFilter
            label={t("payments.status")}
            value={status}
            options={PAYOUT_STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            onFilter={search.set.status}
          />
          <SelectFilter label={t("payments.chain")} value={chain} options={chains} onFilter={search.set.chain} />
          <SelectFilter label={t("payments.token")} value={token} options={tokens} onFilter={search.set.token} />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
          {batchId !== undefined && (
            <Button
              variant="default"
              onClick={() => {
                search.filter({ batchId: "" });
              }}
            >
              {t("payouts.notOneBatch")}
            </Button>
          )}
        </>
      }
      csv={<ProjectCsv list="wallet/payouts" query={asked} />}
      create={create}
      columns={columns}
      query={query}
      rowKey={(one) => one.payoutId}
      href={(one) => `/${projectId}/payouts/${one.payoutId}`}
      {...newestFirst(search)}
      none={t("payouts.none")}
      noneFiltered={t("payouts.noneFiltered")}
    />
  );
}
