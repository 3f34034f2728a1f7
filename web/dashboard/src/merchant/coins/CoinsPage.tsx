import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName, useChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Arrow } from "../../ui/Arrow";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Feedback";
import { Filters, TextFilter } from "../../ui/Filters";
import { None } from "../../ui/None";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Said } from "../../ui/Said";
import { useListSearch } from "../../ui/search";
import { Chip } from "../../ui/Status";
import { api, unwrap } from "../api";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { usePermitted, useProject, useProjectId } from "../project";

import { ApprovedAddresses } from "./ApprovedAddresses";
import { CoinSettings } from "./CoinSettings";
import { coinKey, coinsQuery, type Coin } from "./queries";

const FILTERS = ["coin"] as const;

/** What happens by itself to what comes in, coin by coin, and where it may go. */
export function CoinsPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const project = useProject();
  const query = useQuery(coinsQuery(projectId));
  const search = useListSearch(FILTERS);
  const wanted = search.filters.coin?.toLowerCase() ?? "";
  return (
    <Page title={t("coins.title")} lead={t("coins.lead")}>
      <Section title={t("coins.list")} flush>
        <Filters>
          <TextFilter label={t("coins.search")} value={search.filters.coin} onFilter={search.set.coin} />
        </Filters>
        <QueryView query={query} lines={8}>
          {(coins) => <Coins all={coins} shown={coins.filter((one) => isLike(one, wanted))} />}
        </QueryView>
      </Section>
      {project !== null && <ApprovedAddresses project={project} />}
    </Page>
  );
}

function isLike(coin: Coin, text: string): boolean {
  return `${coin.token} ${coin.label} ${coin.chain}`.toLowerCase().includes(text);
}

function Coins({ all, shown }: { readonly all: readonly Coin[]; readonly shown: readonly Coin[] }) {
  const { t } = useTranslation();
  const mayChange = usePermitted("payouts");
  if (shown.length === 0) return <Empty title={t(all.length === 0 ? "coins.none" : "coins.noneFiltered")} />;
  return (
    <Plain
      label={t("coins.list")}
      rows={shown}
      rowKey={coinKey}
      columns={[
        {
          id: "token",
          title: t("payments.token"),
          cell: (one) => (
            <>
              <b>{one.token}</b>{" "}
              <span className="muted">
                <ChainName of={one.chain} />
              </span>
              {!one.enabled && (
                <div>
                  <Chip tone="calm">{t("coins.off")}</Chip>
                </div>
              )}
            </>
          ),
        },
        { id: "convert", title: t("coins.convert"), cell: (one) => <AutoConvert coin={one} /> },
        { id: "payout", title: t("coins.payout"), cell: (one) => <AutoPayout coin={one} /> },
        {
          id: "minimum",
          title: t("coins.minDeposit"),
          atEnd: true,
          cell: (one) => (one.minDeposit === null ? <None /> : <Amount value={one.minDeposit} token={one.token} />),
        },
        { id: "acts", title: "", atEnd: true, cell: (one) => (mayChange ? <Acts coin={one} /> : null) },
      ]}
    />
  );
}

function AutoConvert({ coin }: { readonly coin: Coin }) {
  const { t } = useTranslation();
  const chainName = useChainName();
  if (!coin.autoConvertEnabled) return <span className="muted">{t("coins.no")}</span>;
  return (
    <>
      {t("coins.into", { token: coin.autoConvertDestToken, chain: chainName(coin.autoConvertDestChain ?? coin.chain) })}
      <Waits reasons={coin.autoConvertWaitsFor} />
    </>
  );
}

function AutoPayout({ coin }: { readonly coin: Coin }) {
  const { t } = useTranslation();
  if (coin.autopayoutPolicy === "off") return <span className="muted">{t("coins.no")}</span>;
  return (
    <>
      {t("coins.above")} <Amount value={coin.autopayoutThreshold ?? "0"} token={coin.token} />
      {coin.autopayoutAddress !== null && (
        <>
          {" "}
          <Arrow /> <Address value={coin.autopayoutAddress} />
        </>
      )}
      <Waits reasons={coin.autopayoutWaitsFor} />
    </>
  );
}

/** Codes whose sentences say how much is there, or what went wrong. */
const WITH_AMOUNTS: ReadonlySet<string> = new Set([
  "AUTO_PAYOUT_FIRST",
  "BELOW_MINIMUM",
  "BELOW_THRESHOLD",
  "EXCHANGE_FAILED",
  "PAYOUT_BELOW_MINIMUM",
  "PAYOUT_LIMIT_EXCEEDED",
]);

/** Why nothing happens just now. */
function Waits({ reasons }: { readonly reasons: Coin["autopayoutWaitsFor"] }) {
  return (
    <ul className="muted">
      {reasons.map((one) => (
        <li key={one.code}>
          <Said of="automatic" code={one.code} words={one.message} withOwn={WITH_AMOUNTS.has(one.code)} />
        </li>
      ))}
    </ul>
  );
}

function Acts({ coin }: { readonly coin: Coin }) {
  const { t } = useTranslation();
  const chainName = useChainName();
  const client = useQueryClient();
  const projectId = useProjectId();
  const [open, setOpen] = useState<"settings" | "enable" | "disable" | null>(null);
  const to = coin.enabled ? "disable" : "enable";
  const close = () => {
    setOpen(null);
  };
  // Where it is switched meanwhile, the next click would do the opposite of what was read.
  if ((open === "enable" || open === "disable") && open !== to) close();

  async function toggle(): Promise<void> {
    // The whole list is sent: what somebody else switched meanwhile stays, and what is switched right now is refused.
    const params = { path: { projectId } };
    const now = await unwrap(api.GET("/api/dashboard/projects/{projectId}/wallet/coins", { params }));
    const { version } = now;
    const coins = now.coins
      .filter((one) => (coinKey(one) === coinKey(coin) ? to === "enable" : one.enabled))
      .map(({ chain, token }) => ({ chain, token }));
    await unwrap(api.PUT("/api/dashboard/projects/{projectId}/wallet/coins", { params, body: { version, coins } }));
    void client.invalidateQueries(coinsQuery(projectId));
  }

  return (
    <span className="row end">
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => {
          setOpen("settings");
        }}
      >
        {t("coins.change")}
      </Button>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => {
          setOpen(to);
        }}
      >
        {t(`coins.${to}`)}
      </Button>
      {open === "settings" && <CoinSettings coin={coin} onClose={close} />}
      {open === to && (
        <Confirm
          title={t(`coins.${to}Title`, {
            coin: `${coin.token} · ${chainName(coin.chain)}`,
          })}
          act={t(`coins.${to}`)}
          onConfirm={toggle}
          onClose={close}
        >
          <p>{t(`coins.${to}Words`)}</p>
          <NeedsSecondFactor />
        </Confirm>
      )}
    </span>
  );
}
