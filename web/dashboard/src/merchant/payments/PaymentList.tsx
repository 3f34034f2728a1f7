import { Button, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Amount, Fiat } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { List, type Column } from "../../ui/List";
import { Page, Section } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { usePermitted, useProjectId } from "../project";
import { chainsQuery, paymentsQuery, type Payment } from "../queries";

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

const FILTERS = ["status", "chain", "orderId"] as const;
const TYPING_MS = 250;

function isStatus(text: string | undefined): text is PaymentStatus {
  return STATUSES.some((one) => one === text);
}

/** A project's payments, newest first. */
export function PaymentList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, chain, orderId } = search.filters;
  const query = useQuery(
    paymentsQuery(projectId, {
      page: search.page,
      ...(isStatus(status) ? { status } : {}),
      ...(chain === undefined ? {} : { chain }),
      ...(orderId === undefined ? {} : { orderId }),
    }),
  );
  const mayCreate = usePermitted("payments");
  const isFiltered = Object.keys(search.filters).length > 0;
  const create = mayCreate && (
    <Button component={Link} to={`/${projectId}/payments/new`}>
      {t("payments.new")}
    </Button>
  );
  const columns: readonly Column<Payment>[] = [
    {
      id: "created",
      title: t("payments.created"),
      cell: (one) => <When at={one.createdAt} />,
    },
    { id: "order", title: t("payments.order"), cell: (one) => one.orderId ?? <span className="muted">–</span> },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "chain", title: t("payments.chain"), cell: (one) => one.chain },
    { id: "asked", title: t("payments.asked"), atEnd: true, cell: (one) => <Asked payment={one} /> },
    {
      id: "received",
      title: t("payments.received"),
      atEnd: true,
      cell: (one) => <Amount value={one.receivedAmount} token={one.token} />,
    },
  ];
  return (
    <Page
      title={t("payments.title")}
      actions={
        <>
          <ProjectCsv list="payments" query={search.filters} />
          {create}
        </>
      }
    >
      <Section flush>
        <Filters filters={search.filters} filter={search.filter} />
        <List
          label={t("payments.title")}
          columns={columns}
          query={query}
          rowKey={(one) => one.paymentId}
          href={(one) => `/${projectId}/payments/${one.paymentId}`}
          onPage={search.goTo}
          empty={
            isFiltered ? (
              <Empty title={t("payments.noneFiltered")}>
                <Button
                  variant="default"
                  onClick={() => {
                    search.filter({ status: "", chain: "", orderId: "" });
                  }}
                >
                  {t("list.clear")}
                </Button>
              </Empty>
            ) : (
              <Empty title={t("payments.none")}>
                <p>{t("payments.noneWords")}</p>
                {create}
              </Empty>
            )
          }
        />
      </Section>
    </Page>
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

type Filtering = Pick<ReturnType<typeof useListSearch<(typeof FILTERS)[number]>>, "filters" | "filter">;

function Filters({ filters, filter }: Filtering) {
  const { t } = useTranslation();
  const { data: chains = [] } = useQuery(chainsQuery);
  const search = useDebouncedCallback((orderId: string) => {
    filter({ orderId });
  }, TYPING_MS);
  return (
    <div className="filters" role="search">
      <TextInput
        aria-label={t("payments.orderSearch")}
        placeholder={t("payments.orderSearch")}
        defaultValue={filters.orderId ?? ""}
        key={filters.orderId === undefined ? "none" : "some"}
        onChange={(event) => {
          search(event.currentTarget.value.trim());
        }}
      />
      <Select
        aria-label={t("payments.status")}
        placeholder={t("payments.status")}
        clearable
        data={STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
        value={filters.status ?? null}
        onChange={(value) => {
          filter({ status: value ?? "" });
        }}
      />
      <Select
        aria-label={t("payments.chain")}
        placeholder={t("payments.chain")}
        clearable
        data={chains.map((one) => ({ value: one.chain, label: one.name }))}
        value={filters.chain ?? null}
        onChange={(value) => {
          filter({ chain: value ?? "" });
        }}
      />
    </div>
  );
}
