import { Button } from "@mantine/core";
import { hashKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Amount, Fiat } from "../../ui/Amount";
import { timesOf } from "../../ui/days";
import { DaysFilter, SelectFilter, TextFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { None } from "../../ui/None";
import { Short } from "../../ui/Short";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { useChainOptions, usePermitted, useProjectId } from "../project";
import { paymentsQuery, type Payment } from "../queries";

const STATUSES = [
  "pending",
  "detected",
  "confirming",
  "paid",
  "underpaid",
  "overpaid",
  "expired",
  "failed",
  "refunded",
] as const;
type PaymentStatus = (typeof STATUSES)[number];

/** What merchants look for most: who is being waited for, what is paid, what needs a look, and what is over. */
const QUICK: readonly PaymentStatus[] = [
  "pending",
  "confirming",
  "paid",
  "underpaid",
  "overpaid",
  "expired",
  "refunded",
];

const SORTS = ["-createdAt", "createdAt"] as const;
const FILTERS = ["status", "chain", "orderId", "amount", "from", "until", "sort"] as const;

function isStatus(text: string | undefined): text is PaymentStatus {
  return STATUSES.some((one) => one === text);
}

function isSort(text: string | undefined): text is (typeof SORTS)[number] {
  return SORTS.some((one) => one === text);
}

/** The same columns for every rendering: rows that stay are not drawn again. */
function columnsOf(t: TFunction): readonly Column<Payment>[] {
  return [
    {
      id: "created",
      title: t("payments.created"),
      sort: "createdAt",
      cell: (one) => <When at={one.createdAt} />,
    },
    {
      id: "order",
      title: t("payments.order"),
      cell: (one) => (one.orderId === null ? <None /> : <Short text={one.orderId} />),
    },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "asked", title: t("payments.asked"), atEnd: true, cell: (one) => <Asked payment={one} /> },
    {
      id: "received",
      title: t("payments.received"),
      atEnd: true,
      cell: (one) => <Amount value={one.receivedAmount} token={one.token} />,
    },
  ];
}

type Filters = Partial<Record<(typeof FILTERS)[number], string>>;

/** Return what the API is asked for, without what it does not know. */
function askedBy({ status, chain, orderId, amount, from, until, sort }: Filters) {
  return {
    ...(isStatus(status) ? { status } : {}),
    ...(chain === undefined ? {} : { chain }),
    ...(orderId === undefined ? {} : { orderId }),
    ...(amount === undefined ? {} : { amount }),
    ...timesOf(from, until),
    ...(isSort(sort) ? { sort } : {}),
  };
}

/**
 * A project's payments, newest first. What stays the same from one rendering to the next is not drawn anew: the fields and
 * buttons around the rows take longer than the rows do.
 */
export function PaymentList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const ahead = useCallback(
    (page: number, filters: Filters) => {
      const question = paymentsQuery(projectId, { page, ...askedBy(filters) });
      // What was asked for before and has not come to be shown is not waited for: typing asks with each letter.
      const asked = hashKey(question.queryKey);
      void client.cancelQueries({
        queryKey: question.queryKey.slice(0, -1),
        predicate: (one) => one.getObserversCount() === 0 && one.queryHash !== asked,
      });
      client.query(question).catch(() => undefined); // the list says what failed
    },
    [client, projectId],
  );
  const search = useListSearch(FILTERS, undefined, ahead);
  const { filters, set } = search;
  const asked = useMemo(() => askedBy(filters), [filters]);
  const query = useQuery(paymentsQuery(projectId, { page: search.page, ...asked }));
  const chains = useChainOptions();
  const statuses = useMemo(() => STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) })), [t]);
  const quick = useMemo(() => QUICK.map((one) => ({ value: one, label: t(`status.${one}`) })), [t]);
  const mayCreate = usePermitted("payments");
  const create = useMemo(
    () =>
      mayCreate && (
        <Button component={Link} to={`/${projectId}/payments/new`}>
          {t("payments.new")}
        </Button>
      ),
    [mayCreate, projectId, t],
  );
  const csv = useMemo(() => <ProjectCsv list="payments" query={asked} />, [asked]);
  const columns = useMemo(() => columnsOf(t), [t]);
  return (
    <ListPage
      title={t("payments.title")}
      search={search}
      quick={{
        label: t("payments.status"),
        all: t("payments.all"),
        value: filters.status,
        options: quick,
        onFilter: set.status,
      }}
      filters={
        <>
          <TextFilter label={t("payments.orderSearch")} value={filters.orderId} onFilter={set.orderId} />
          <TextFilter label={t("payments.amount")} value={filters.amount} onFilter={set.amount} />
          <SelectFilter label={t("payments.status")} value={filters.status} options={statuses} onFilter={set.status} />
          <SelectFilter label={t("payments.chain")} value={filters.chain} options={chains} onFilter={set.chain} />
          <DaysFilter from={filters.from} until={filters.until} onFilter={search.filter} />
        </>
      }
      csv={csv}
      create={create}
      columns={columns}
      query={query}
      rowKey={(one) => one.paymentId}
      href={(one) => `/${projectId}/payments/${one.paymentId}`}
      {...newestFirst(search)}
      none={t("payments.none")}
      noneWords={t("payments.noneWords")}
      noneFiltered={t("payments.noneFiltered")}
    />
  );
}

function Asked({ payment }: { readonly payment: Payment }) {
  return (
    <>
      <Amount value={payment.expectedAmount} token={payment.token} />
      {payment.pricingMode === "fiat" && payment.fiatCurrency !== undefined && (
        <div className="muted">
          <Fiat value={payment.amount} currency={payment.fiatCurrency} />
        </div>
      )}
    </>
  );
}
