import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { CsvButton } from "../../ui/CsvButton";
import { timesOf } from "../../ui/days";
import { shortId } from "../../ui/format";
import { DaysFilter, SelectFilter } from "../../ui/Filters";
import type { Column } from "../../ui/List";
import { chosenOf } from "../../ui/options";
import { ListPage } from "../../ui/ListPage";
import { newestFirst, useListSearch } from "../../ui/search";
import { None } from "../../ui/None";
import { Failed } from "../../ui/Said";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { merchantSession } from "../api";
import { useProjectId } from "../project";

import { refundListQuery, type Refund } from "./queries";

const FILTERS = ["status", "from", "until", "sort"] as const;
const STATUSES = ["requested", "processing", "broadcast", "completed", "failed", "cancelling", "cancelled"] as const;
const SORTS = ["createdAt", "-createdAt"] as const;

/** All that the project sent back. Each is asked for where its payment or its resolution is. */
export function RefundList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, from, until, sort } = search.filters;
  const asked = {
    ...chosenOf("status", STATUSES, status),
    ...timesOf(from, until),
    ...chosenOf("sort", SORTS, sort),
  };
  const query = useQuery(refundListQuery(projectId, { page: search.page, ...asked }));
  const columns: readonly Column<Refund>[] = [
    { id: "created", title: t("payments.created"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    {
      id: "payment",
      title: t("payment.title"),
      cell: (one) =>
        one.paymentId === null ? (
          <None />
        ) : (
          <Link to={`/${projectId}/payments/${one.paymentId}`} title={one.paymentId}>
            <code>{shortId(one.paymentId)}</code>
          </Link>
        ),
    },
    { id: "to", title: t("payouts.to"), cell: (one) => <Address value={one.toAddress} /> },
    { id: "reason", title: t("refund.reason"), cell: (one) => <Reason refund={one} /> },
    {
      id: "amount",
      title: t("payments.amount"),
      atEnd: true,
      cell: (one) => <Amount value={one.amount} token={one.token} />,
    },
  ];
  return (
    <ListPage
      title={t("refund.list")}
      lead={t("refund.lead")}
      search={search}
      filters={
        <>
          <SelectFilter
            label={t("payments.status")}
            value={status}
            options={STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            onFilter={search.set.status}
          />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
        </>
      }
      csv={
        <CsvButton
          path={`/api/dashboard/projects/${projectId}/payments/refunds/list`}
          query={asked}
          name="refunds"
          session={merchantSession}
        />
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.refundId}
      href={(one) => `/${projectId}/refunds/${one.refundId}`}
      {...newestFirst(search)}
      none={t("refund.none")}
      noneFiltered={t("refund.noneFiltered")}
    />
  );
}

/** Why it failed, or else why it was sent back. */
function Reason({ refund: { error, errorCode, reason } }: { readonly refund: Refund }) {
  if (error !== null) return <Failed code={errorCode ?? ""} words={error} />;
  return reason === null ? <None /> : <bdi>{reason}</bdi>;
}
