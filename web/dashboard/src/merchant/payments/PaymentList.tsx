import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Amount, Fiat } from "../../ui/Amount";
import { timesOf } from "../../ui/days";
import { DaysFilter, SelectFilter, TextFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Short } from "../../ui/Short";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { useChains, usePermitted, useProjectId } from "../project";
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
      cell: (one) => (one.orderId === null ? <span className="muted">–</span> : <Short text={one.orderId} />),
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

/** A project's payments, newest first. */
export function PaymentList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, chain, orderId, amount, from, until, sort } = search.filters;
  const asked = {
    ...(isStatus(status) ? { status } : {}),
    ...(chain === undefined ? {} : { chain }),
    ...(orderId === undefined ? {} : { orderId }),
    ...(amount === undefined ? {} : { amount }),
    ...timesOf(from, until),
    ...(isSort(sort) ? { sort } : {}),
  };
  const query = useQuery(paymentsQuery(projectId, { page: search.page, ...asked }));
  const { data: chains = [] } = useChains();
  const mayCreate = usePermitted("payments");
  const create = mayCreate && (
    <Button component={Link} to={`/${projectId}/payments/new`}>
      {t("payments.new")}
    </Button>
  );
  const columns = useMemo(() => columnsOf(t), [t]);
  return (
    <ListPage
      title={t("payments.title")}
      search={search}
      filters={
        <>
          <TextFilter
            label={t("payments.orderSearch")}
            value={orderId}
            onFilter={(text) => {
              search.filter({ orderId: text });
            }}
          />
          <TextFilter
            label={t("payments.amount")}
            value={amount}
            onFilter={(text) => {
              search.filter({ amount: text });
            }}
          />
          <SelectFilter
            label={t("payments.status")}
            value={status}
            options={STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            onFilter={(chosen) => {
              search.filter({ status: chosen });
            }}
          />
          <SelectFilter
            label={t("payments.chain")}
            value={chain}
            options={chains.map((one) => ({ value: one.chain, label: one.name }))}
            onFilter={(chosen) => {
              search.filter({ chain: chosen });
            }}
          />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
        </>
      }
      csv={<ProjectCsv list="payments" query={asked} />}
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
