import { useQuery } from "@tanstack/react-query";

import { ChainName } from "../../ui/ChainName";
import { Amount } from "../../ui/Amount";
import { CsvButton } from "../../ui/CsvButton";
import { SelectFilter } from "../../ui/Filters";
import { showSpan } from "../../ui/format";
import { type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Meaning, useMeaning } from "../../ui/Meaning";
import { newestFirst, useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { operatorSession, useWords } from "../api";
import { ChainFilter } from "../chains/ChainFilter";
import { MerchantLink } from "../merchants/MerchantLink";
import { MerchantFilter } from "../merchants/MerchantSelect";

import { IntentState } from "./IntentState";
import { WaitsFor } from "./WaitsFor";
import { queueQuery, type Filters as Asked, type Intent } from "./queries";

const FILTERS = ["state", "chain", "kind", "mode", "reason", "merchantId", "olderThanMinutes", "sort"] as const;
/** What is said of what is open, and is found by. The signer's reasons begin with its name. */
const REASONS = [
  "collection",
  "gas",
  "gas_station_empty",
  "fees_above_ceiling",
  "turn",
  "call",
  "allowance",
  "provider",
  "paused",
  "merchant_suspended",
  "token_not_sendable",
  "nonce_doubted",
  "cancellation",
  "signed_before",
  "new",
  "gives_way",
  "not_looked_at",
  "chain_unavailable",
  "swept",
  "confirming",
  "sequence_taken",
  "gap",
  "behind",
  "not_taken",
  "pending",
] as const;
const REASONS_OF_SIGNER = [
  "HOURLY_CAP",
  "HOURLY_FEES",
  "TARGET_TOO_FRESH",
  "APPROVAL_NEEDED",
  "ALREADY_SIGNED",
  "TARGET_NOT_ALLOWED",
  "FEE_ABOVE_CAP",
  "PRICE_UNKNOWN",
] as const;
const AGES_MIN = [10, 60, 360, 1_440, 10_080] as const;
const STATES = ["waiting", "sending", "cancelling"] as const;
type Kind = NonNullable<Asked["kind"]>;
const KINDS = Object.keys({
  payout: true,
  refund: true,
  withdrawal: true,
  auto_payout: true,
  collection: true,
  sweep: true,
  repair: true,
  top_up: true,
  loan: true,
  loan_return: true,
  approval: true,
  swap: true,
  bridge: true,
  stake: true,
  unstake: true,
  withdraw_stake: true,
} satisfies Record<Kind, true>) as Kind[];
const MODES = ["live", "sandbox"] as const;
const POLL_MS = 10_000;

/** All that is to be sent, of everybody and of the gateway itself: why each waits, and how far it has come. */
export function QueuePage() {
  const { t, i18n } = useWords();
  const meaning = useMeaning();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  // What stands in the address is checked by the API, which says what is wrong with it.
  const query = useQuery({
    ...queueQuery({ ...filters, page: search.page } as unknown as Asked),
    refetchInterval: POLL_MS,
  });
  const columns: readonly Column<Intent>[] = [
    {
      id: "created",
      title: t("common:payments.created"),
      sort: "createdAt",
      cell: (one) => <When at={one.createdAt} />,
    },
    { id: "kind", title: t("record.kind"), cell: (one) => <Meaning of="kind" code={one.kind} /> },
    { id: "state", title: t("record.status"), cell: (one) => <IntentState state={one.state} /> },
    { id: "merchant", title: t("record.merchant"), cell: (one) => <MerchantLink of={one} /> },
    { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "waits", title: t("record.waits"), cell: (one) => <WaitsFor what={one.waitsFor} /> },
    {
      id: "amount",
      title: t("record.amount"),
      atEnd: true,
      cell: (one) => (one.amount === null ? one.token : <Amount value={one.amount} token={one.token} />),
    },
  ];
  return (
    <ListPage
      title={t("nav.queue")}
      lead={t("queue.lead")}
      search={search}
      csv={<CsvButton path="/api/admin/outbound" query={filters} name="outbound" session={operatorSession} />}
      filters={
        <>
          <SelectFilter
            label={t("record.status")}
            value={filters.state}
            options={STATES.map((one) => ({ value: one, label: t(`intentState.${one}`) }))}
            onFilter={search.set.state}
          />
          <ChainFilter value={filters.chain} onFilter={search.set.chain} />
          <SelectFilter
            label={t("record.kind")}
            value={filters.kind}
            options={KINDS.map((one) => ({ value: one, label: meaning("kind", one) }))}
            onFilter={search.set.kind}
          />
          <SelectFilter
            label={t("common:mode.title")}
            value={filters.mode ?? "live"}
            isRequired
            options={MODES.map((one) => ({ value: one, label: t(`common:mode.${one}`) }))}
            onFilter={(mode) => {
              search.filter({ mode: mode === "live" ? "" : mode });
            }}
          />
          <SelectFilter
            label={t("record.waits")}
            value={filters.reason}
            options={[
              ...REASONS.map((one) => ({ value: one, label: t(`queue.reasons.${one}`) })),
              ...REASONS_OF_SIGNER.map((one) => ({ value: `signer: ${one}`, label: t(`queue.reasons.${one}`) })),
            ]}
            onFilter={search.set.reason}
          />
          <MerchantFilter value={filters.merchantId} onFilter={search.set.merchantId} />
          <SelectFilter
            label={t("queue.age")}
            value={filters.olderThanMinutes}
            options={AGES_MIN.map((one) => ({
              value: String(one),
              label: t("queue.older", { time: showSpan(60 * one, i18n.language) }),
            }))}
            onFilter={search.set.olderThanMinutes}
          />
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.intentId}
      href={(one) => `/queue/${one.intentId}`}
      {...newestFirst(search)}
      none={t("queue.none")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}
