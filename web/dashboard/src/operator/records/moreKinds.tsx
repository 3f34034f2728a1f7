import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { listed } from "../../ui/List";
import { Meaning } from "../../ui/Meaning";
import { Failed, Waits } from "../../ui/Said";
import { Status } from "../../ui/Status";
import { api, unwrap, type Schemas } from "../api";
import { Height as Count } from "../chains/ChainsPage";
import { ROWS } from "../queries";

import type { Filters, Kind } from "./kinds";

const query = (filters: Filters) => ({ limit: ROWS, ...filters });
const activity = (isActive: boolean) => (isActive ? "active" : "inactive");

export const exchanges: Kind<Schemas["ExchangeRow"]> = {
  name: "exchanges",
  statuses: ["pending", "succeeded", "failed"],
  idOf: (row) => row.txnId,
  statusOf: (row) => row.status,
  columns: (t) => [
    { id: "status", title: t("status"), cell: (row) => <Status value={row.status} /> },
    { id: "kind", title: t("kind"), cell: (row) => <Meaning of="kind" code={row.kind} /> },
    { id: "provider", title: t("provider"), cell: (row) => row.provider },
    {
      id: "amount",
      title: t("amount"),
      atEnd: true,
      cell: (row) => (
        <>
          <Amount value={row.sourceAmount} token={row.sourceToken} />
          <div className="muted">
            <ChainName of={row.sourceChain} />
          </div>
        </>
      ),
    },
    {
      id: "gets",
      title: t("gets"),
      atEnd: true,
      cell: (row) => (
        <>
          {row.destAmount === null ? row.destToken : <Amount value={row.destAmount} token={row.destToken} />}
          <div className="muted">
            <ChainName of={row.destChain} />
          </div>
        </>
      ),
    },
  ],
  facts: (row, t) => [
    [t("kind"), <Meaning key="kind" of="kind" code={row.kind} />],
    [t("provider"), row.provider],
    [t("amount"), <OnChain key="amount" amount={row.sourceAmount} token={row.sourceToken} chain={row.sourceChain} />],
    [
      t("gets"),
      row.destAmount === null ? null : (
        <OnChain key="gets" amount={row.destAmount} token={row.destToken} chain={row.destChain} />
      ),
    ],
    [t("sourceTx"), row.txHash === null ? null : <Address key="tx" value={row.txHash} whole />],
    [t("destTx"), row.destTxHash === null ? null : <Address key="destTx" value={row.destTxHash} whole />],
    [
      t("waits"),
      row.waitsFor === null ? null : <Waits key="waits" code={row.waitsFor} words={row.waitsForText ?? row.waitsFor} />,
    ],
    [t("error"), row.error === null ? null : <Failed key="error" code={row.errorCode ?? ""} words={row.error} />],
  ],
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/exchanges", { params: { query: query(filters) }, signal }));
    return listed(answer.exchanges, answer);
  },
  read: async (txnId, signal) => {
    const params = { path: { txnId } };
    return { row: (await unwrap(api.GET("/api/admin/exchanges/{txnId}", { params, signal }))).exchange };
  },
};

export const accounts: Kind<Schemas["AccountRow"]> = {
  name: "accounts",
  statuses: ["active", "inactive"],
  idOf: (row) => row.accountId,
  statusOf: (row) => activity(row.isActive),
  columns: (t) => [
    { id: "status", title: t("status"), cell: (row) => <Status value={activity(row.isActive)} /> },
    { id: "externalId", title: t("externalId"), cell: (row) => row.externalId },
  ],
  facts: (row, t) => [[t("externalId"), row.externalId]],
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/accounts", { params: { query: query(filters) }, signal }));
    return listed(answer.accounts, answer);
  },
  read: async (accountId, signal) => {
    const params = { path: { accountId } };
    return { row: (await unwrap(api.GET("/api/admin/accounts/{accountId}", { params, signal }))).account };
  },
};

export const trackers: Kind<Schemas["TrackerRow"]> = {
  name: "trackers",
  statuses: ["active", "inactive"],
  idOf: (row) => row.webhookId,
  statusOf: (row) => activity(row.isActive),
  columns: (t) => [
    { id: "status", title: t("status"), cell: (row) => <Status value={activity(row.isActive)} /> },
    { id: "name", title: t("name"), cell: (row) => row.name },
    { id: "chain", title: t("chain"), cell: (row) => <ChainName of={row.chain} /> },
  ],
  facts: (row, t) => [
    [t("name"), row.name],
    [t("chain"), <ChainName key="chain" of={row.chain} />],
    [t("startBlock"), <Count key="start" value={row.startBlock} />],
    [t("maxAddresses"), <Count key="most" value={row.maxAddresses} />],
  ],
  list: async (filters, signal) => {
    const answer = await unwrap(api.GET("/api/admin/trackers", { params: { query: query(filters) }, signal }));
    return listed(answer.trackers, answer);
  },
  read: async (webhookId, signal) => {
    const params = { path: { webhookId } };
    return { row: (await unwrap(api.GET("/api/admin/trackers/{webhookId}", { params, signal }))).tracker };
  },
};

interface OnChainProps {
  readonly amount: string;
  readonly token: string;
  readonly chain: string;
}

function OnChain({ amount, token, chain }: OnChainProps) {
  return (
    <>
      <Amount value={amount} token={token} /> · <ChainName of={chain} />
    </>
  );
}
