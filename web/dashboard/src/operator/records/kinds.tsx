/** What operators list and read of all merchants: each kind with its columns, its facts, and how it is asked for. */
import { Link } from "@tanstack/react-router";

import { ChainName } from "../../ui/ChainName";
import { Meaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import type { Fact } from "../../ui/Page";
import type { Column, Listed } from "../../ui/List";
import { listed } from "../../ui/List";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Failed, Waits } from "../../ui/Said";
import { Short } from "../../ui/Short";
import { Status } from "../../ui/Status";
import { api, unwrap, type Operations, type Schemas } from "../api";
import { Height } from "../chains/ChainsPage";
import { ROWS } from "../queries";

export type Filters = NonNullable<Operations["listAllPayments"]["parameters"]["query"]>;

/** What the rows of all kinds have. */
export interface Owned {
  readonly merchantId: string | null;
  readonly merchantName: string | null;
  readonly projectId: string | null;
  readonly projectName: string | null;
  readonly mode: "live" | "sandbox";
  readonly createdAt: string;
}

/** What came of it on the chain and at the merchant's server, for kinds that have more to tell than their row. */
export type Story =
  | ({ readonly of: "payment"; readonly token: string } & Schemas["PaymentStory"])
  | ({ readonly of: "sent" } & Schemas["SentStory"]);

export interface Kind<Row extends Owned> {
  /** As it is called in addresses: the API's, and the pages'. */
  readonly name: Name;
  readonly statuses: readonly string[];
  readonly idOf: (row: Row) => string;
  readonly statusOf?: (row: Row) => string;
  readonly columns: (t: Words) => readonly Column<Row>[];
  readonly facts: (row: Row, t: Words) => readonly Fact[];
  readonly list: (query: Filters, signal: AbortSignal) => Promise<Listed<Row>>;
  readonly read: (id: string, signal: AbortSignal) => Promise<{ readonly row: Row; readonly story?: Story }>;
}

export type Name =
  "payments" | "deposits" | "payouts" | "refunds" | "withdrawals" | "exchanges" | "accounts" | "trackers";

export type Word =
  | "status"
  | "chain"
  | "amount"
  | "to"
  | "order"
  | "received"
  | "asked"
  | "address"
  | "from"
  | "tx"
  | "sourceTx"
  | "destTx"
  | "block"
  | "held"
  | "why"
  | "resolution"
  | "payment"
  | "account"
  | "waits"
  | "error"
  | "expires"
  | "updated"
  | "completed"
  | "confirmed"
  | "provider"
  | "gets"
  | "externalId"
  | "name"
  | "active"
  | "startBlock"
  | "maxAddresses"
  | "kind";
export type Words = (word: Word) => string;

/** Why a deposit belongs to no order, what was decided about it, or how much of it is more than its order asks. */
function Held({ row }: { readonly row: Schemas["DepositRow"] }) {
  if (row.resolution !== null) return <Meaning of="resolution" code={row.resolution} />;
  if (row.heldReason !== null) return <Meaning of="held" code={row.heldReason} />;
  return row.heldAmount === "0" ? <None /> : <Amount value={row.heldAmount} token={row.token} />;
}

/** What belongs to it, on a page of its own. */
function Other({ of, id }: { readonly of: Name; readonly id: string }) {
  return (
    <Link to={`/${of}/${id}`}>
      <code>{id}</code>
    </Link>
  );
}

const hash = (value: string | null) => (value === null ? null : <Address value={value} whole />);
const query = (filters: Filters) => ({ limit: ROWS, ...filters });

export const payments: Kind<Schemas["PaymentRow"]> = {
  name: "payments",
  statuses: ["pending", "detected", "confirming", "paid", "underpaid", "overpaid", "expired", "failed", "refunded"],
  idOf: (row) => row.paymentId,
  statusOf: (row) => row.status,
  columns: (t) => [
    { id: "status", title: t("status"), cell: (row) => <Status value={row.status} /> },
    { id: "order", title: t("order"), cell: (row) => (row.orderId === null ? <None /> : <Short text={row.orderId} />) },
    { id: "chain", title: t("chain"), cell: (row) => <ChainName of={row.chain} /> },
    {
      id: "asked",
      title: t("asked"),
      atEnd: true,
      cell: (row) => <Amount value={row.expectedAmount} token={row.token} />,
    },
    {
      id: "received",
      title: t("received"),
      atEnd: true,
      cell: (row) => <Amount value={row.receivedAmount} token={row.token} />,
    },
  ],
  facts: (row, t) => [
    [t("asked"), <Amount key="asked" value={row.expectedAmount} token={row.token} />],
    [t("received"), <Amount key="received" value={row.receivedAmount} token={row.token} />],
    [t("chain"), <ChainName key="chain" of={row.chain} />],
    [t("order"), row.orderId],
    [t("address"), hash(row.depositAddress)],
    [t("tx"), hash(row.txHash)],
  ],
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/payments", { params: { query: query(filters) }, signal }));
    return listed(answer.payments, answer);
  },
  read: async (paymentId, signal) => {
    const params = { path: { paymentId } };
    const { payment, story } = await unwrap(api.GET("/api/admin/payments/{paymentId}", { params, signal }));
    return { row: payment, story: { of: "payment", token: payment.token, ...story } };
  },
};

export const deposits: Kind<Schemas["DepositRow"]> = {
  name: "deposits",
  statuses: ["detected", "confirmed", "orphaned"],
  idOf: (row) => row.depositId,
  statusOf: (row) => row.status,
  columns: (t) => [
    { id: "status", title: t("status"), cell: (row) => <Status value={row.status} /> },
    { id: "chain", title: t("chain"), cell: (row) => <ChainName of={row.chain} /> },
    { id: "tx", title: t("tx"), cell: (row) => <Address value={row.txHash} /> },
    { id: "held", title: t("held"), cell: (row) => <Held row={row} /> },
    { id: "amount", title: t("amount"), atEnd: true, cell: (row) => <Amount value={row.amount} token={row.token} /> },
  ],
  facts: (row, t) => [
    [t("amount"), <Amount key="amount" value={row.amount} token={row.token} />],
    [t("held"), <Amount key="held" value={row.heldAmount} token={row.token} />],
    [t("why"), row.heldReason === null ? null : <Meaning key="why" of="held" code={row.heldReason} />],
    [
      t("resolution"),
      row.resolution === null ? null : (
        <Link key="resolution" to={`/resolutions/${row.depositId}`}>
          <Meaning of="resolution" code={row.resolution} />
        </Link>
      ),
    ],
    [t("chain"), <ChainName key="chain" of={row.chain} />],
    [t("block"), <Height key="block" value={row.blockNumber} />],
    [t("address"), hash(row.address)],
    [t("from"), hash(row.fromAddress)],
    [t("tx"), hash(row.txHash)],
    [t("payment"), row.paymentId === null ? null : <Other key="payment" of="payments" id={row.paymentId} />],
    [t("account"), row.accountId === null ? null : <Other key="account" of="accounts" id={row.accountId} />],
  ],
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/deposits", { params: { query: query(filters) }, signal }));
    return listed(answer.deposits, answer);
  },
  read: async (depositId, signal) => {
    const params = { path: { depositId } };
    return { row: (await unwrap(api.GET("/api/admin/deposits/{depositId}", { params, signal }))).deposit };
  },
};

type Sent = Schemas["SentRow"];

/** Why it has failed, or what it waits for. */
function waiting({ error, errorCode, waitsFor, waitsForText }: Sent) {
  if (error !== null) return <Failed code={errorCode ?? ""} words={error} />;
  return waitsFor === null ? <None /> : <Waits code={waitsFor} words={waitsForText ?? waitsFor} />;
}

const sent: Pick<Kind<Sent>, "statuses" | "idOf" | "statusOf" | "columns" | "facts"> = {
  statuses: ["requested", "processing", "broadcast", "completed", "failed", "cancelling", "cancelled"],
  idOf: (row) => row.id,
  statusOf: (row) => row.status,
  columns: (t) => [
    { id: "status", title: t("status"), cell: (row) => <Status value={row.status} /> },
    { id: "chain", title: t("chain"), cell: (row) => <ChainName of={row.chain} /> },
    { id: "to", title: t("to"), cell: (row) => <Address value={row.toAddress} /> },
    { id: "waits", title: t("waits"), cell: waiting },
    { id: "amount", title: t("amount"), atEnd: true, cell: (row) => <Amount value={row.amount} token={row.token} /> },
  ],
  facts: (row, t) => [
    [t("kind"), <Meaning key="kind" of="kind" code={row.kind} />],
    [t("amount"), <Amount key="amount" value={row.amount} token={row.token} />],
    [t("chain"), <ChainName key="chain" of={row.chain} />],
    [t("to"), hash(row.toAddress)],
    [t("tx"), hash(row.txHash)],
    [
      t("waits"),
      row.waitsFor === null ? null : <Waits key="waits" code={row.waitsFor} words={row.waitsForText ?? row.waitsFor} />,
    ],
    [t("error"), row.error === null ? null : <Failed key="error" code={row.errorCode ?? ""} words={row.error} />],
  ],
};

export const payouts: Kind<Sent> = {
  ...sent,
  name: "payouts",
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/payouts", { params: { query: query(filters) }, signal }));
    return listed(answer.payouts, answer);
  },
  read: async (payoutId, signal) => {
    const params = { path: { payoutId } };
    const { payout, story } = await unwrap(api.GET("/api/admin/payouts/{payoutId}", { params, signal }));
    return { row: payout, story: { of: "sent", ...story } };
  },
};

export const refunds: Kind<Sent> = {
  ...sent,
  name: "refunds",
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/refunds", { params: { query: query(filters) }, signal }));
    return listed(answer.refunds, answer);
  },
  read: async (refundId, signal) => {
    const params = { path: { refundId } };
    const { refund, story } = await unwrap(api.GET("/api/admin/refunds/{refundId}", { params, signal }));
    return { row: refund, story: { of: "sent", ...story } };
  },
};

export const withdrawals: Kind<Sent> = {
  ...sent,
  name: "withdrawals",
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/withdrawals", { params: { query: query(filters) }, signal }));
    return listed(answer.withdrawals, answer);
  },
  read: async (withdrawalId, signal) => {
    const params = { path: { withdrawalId } };
    const { withdrawal, story } = await unwrap(api.GET("/api/admin/withdrawals/{withdrawalId}", { params, signal }));
    return { row: withdrawal, story: { of: "sent", ...story } };
  },
};
