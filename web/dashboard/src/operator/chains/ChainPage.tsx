import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { showList } from "../../ui/format";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { When } from "../../ui/When";
import { api, unwrap, useWords, type Schemas } from "../api";
import { limitOf } from "../gas/limit";
import { usePermitted } from "../queries";

import { Height, Lag, Problem, problemOf } from "./ChainsPage";
import { ChainStatus } from "./ChainStatus";
import { Endpoints } from "./Endpoints";
import { Steering } from "./Steering";

const POLL_MS = 5_000;

/** One chain: how it stands, its endpoints, and what can be done about it. */
export function ChainPage() {
  const chain = usePathPart("chain");
  const query = useQuery({
    queryKey: ["chain", chain],
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => {
      const params = { path: { chain } };
      return (await unwrap(api.GET("/api/admin/chains/{chain}", { params, signal }))).chain;
    },
  });
  return (
    <QueryPage title={chain} query={query}>
      {(one) => <Shown chain={one} at={query.dataUpdatedAt} />}
    </QueryPage>
  );
}

function Shown({ chain, at }: { readonly chain: Schemas["AdminChainView"]; readonly at: number }) {
  const { t, i18n } = useWords();
  const station = chain.gasStation;
  const lowBelow = limitOf(station?.lowBelow ?? null);
  const mayReadMoney = usePermitted("money.read");
  return (
    <Page
      title={chain.name}
      lead={
        <span className="row">
          <ChainStatus chain={chain} />
          <code>{chain.chain}</code>
          {mayReadMoney && (
            <Link to="/uncollected" search={{ chain: chain.chain }}>
              {t("overview.toUncollected")}
            </Link>
          )}
        </span>
      }
    >
      <Section title={t("chains.state")}>
        <Facts
          facts={[
            [t("chains.problem"), problemOf(chain) === null ? null : <Problem key="problem" of={chain} />],
            [
              t("chains.failingSince"),
              chain.failingSince === null ? null : <When key="since" at={chain.failingSince} />,
            ],
            [t("chains.lag"), chain.lagBlocks === null ? null : <Lag key="lag" chain={chain} at={at} />],
            [t("chains.height"), chain.height === null ? null : <Height key="height" value={chain.height} />],
            [t("chains.head"), chain.head === null ? null : <Height key="head" value={chain.head} />],
            [
              t("chains.final"),
              chain.finalizedHeight === null ? null : <Height key="final" value={chain.finalizedHeight} />,
            ],
            [t("chains.polled"), chain.polledAt === null ? null : <When key="polled" at={chain.polledAt} />],
            [t("chains.confirmations"), chain.confirmations],
            [t("chains.quorum"), chain.quorum],
            [t("chains.tokens"), showList(chain.tokens, i18n.language)],
          ]}
        />
      </Section>
      {chain.availability === "live" && <Steering chain={chain} />}
      <Endpoints chain={chain} />
      {station !== null && (
        <Section title={t("chains.gas")}>
          <Facts
            facts={[
              [
                t("gas.balance"),
                station.balance === null ? null : (
                  <Amount key="balance" value={station.balance} token={station.symbol} />
                ),
              ],
              [
                t("gas.lowBelow"),
                station.isLow !== true || lowBelow === null ? null : (
                  <Amount key="low" value={lowBelow} token={station.symbol} />
                ),
              ],
              [t("gas.low"), station.isLow === true ? t("gas.isLow") : null],
              [t("gas.waiting"), station.waiting],
              [t("record.address"), <Address key="address" value={station.address} whole />],
            ]}
          />
        </Section>
      )}
    </Page>
  );
}
