import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Amount } from "../../ui/Amount";
import { SelectFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { chosenOf } from "../../ui/options";
import { ListPage } from "../../ui/ListPage";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { useChainOptions, usePermitted, useProjectId } from "../project";

import { exchangesQuery, type Exchange } from "./queries";

const KINDS = ["swap", "bridge"] as const;
const STATUSES = ["pending", "succeeded", "failed"] as const;
const MODES = ["manual", "auto", "payout"] as const;
const FILTERS = ["kind", "status", "mode", "chain"] as const;

/** A project's swaps and bridges, newest first. */
export function ExchangeList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { kind, status, mode, chain } = search.filters;
  const chains = useChainOptions();
  const query = useQuery(
    exchangesQuery(projectId, {
      page: search.page,
      ...chosenOf("kind", KINDS, kind),
      ...chosenOf("status", STATUSES, status),
      ...chosenOf("mode", MODES, mode),
      ...(chain === undefined ? {} : { chain }),
    }),
  );
  const columns: readonly Column<Exchange>[] = [
    { id: "created", title: t("payments.created"), cell: (one) => <When at={one.createdAt} /> },
    { id: "kind", title: t("exchange.kind"), cell: (one) => t(`exchange.kinds.${one.kind}`) },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "mode", title: t("exchange.mode"), cell: (one) => t(`exchange.modes.${one.mode}`) },
    {
      id: "given",
      title: t("exchange.given"),
      atEnd: true,
      cell: (one) => (
        <>
          <Amount value={one.sourceAmount} token={one.sourceToken} />
          <div className="muted">
            <ChainName of={one.sourceChain} />
          </div>
        </>
      ),
    },
    {
      id: "came",
      title: t("exchange.came"),
      atEnd: true,
      cell: (one) => (
        <>
          <Came exchange={one} />
          <div className="muted">
            <ChainName of={one.destChain} />
          </div>
        </>
      ),
    },
  ];
  const create = usePermitted("exchange") && (
    <Button component={Link} to={`/${projectId}/exchanges/new`}>
      {t("exchange.new")}
    </Button>
  );
  const select = (name: "kind" | "status" | "mode", value: string | undefined, label: string, options: Options) => (
    <SelectFilter label={label} value={value} options={options} onFilter={search.set[name]} />
  );
  return (
    <ListPage
      title={t("exchange.title")}
      search={search}
      filters={
        <>
          {select(
            "kind",
            kind,
            t("exchange.kind"),
            KINDS.map((one) => ({ value: one, label: t(`exchange.kinds.${one}`) })),
          )}
          {select(
            "status",
            status,
            t("payments.status"),
            STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) })),
          )}
          {select(
            "mode",
            mode,
            t("exchange.mode"),
            MODES.map((one) => ({ value: one, label: t(`exchange.modes.${one}`) })),
          )}
          <SelectFilter label={t("payments.chain")} value={chain} options={chains} onFilter={search.set.chain} />
        </>
      }
      csv={<ProjectCsv list="swap-bridge/history" query={search.filters} />}
      create={create}
      columns={columns}
      query={query}
      rowKey={(one) => one.txnId}
      href={(one) => `/${projectId}/exchanges/${one.txnId}`}
      none={t("exchange.none")}
      noneFiltered={t("exchange.noneFiltered")}
    />
  );
}

type Options = readonly { readonly value: string; readonly label: string }[];

/** What came out; before that, how little may come. */
function Came({ exchange }: { readonly exchange: Exchange }) {
  const { t } = useTranslation();
  if (exchange.destAmount !== null) return <Amount value={exchange.destAmount} token={exchange.destToken} />;
  if (exchange.status === "failed") return <span className="muted">{exchange.destToken}</span>;
  return (
    <span className="muted">
      {t("exchange.atLeastOf")} <Amount value={exchange.destAmountMin} token={exchange.destToken} />
    </span>
  );
}
