import { useQuery, useQueryClient } from "@tanstack/react-query";

import { Rate } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { showList } from "../../ui/format";
import { useMeaning } from "../../ui/Meaning";
import { Page, Section } from "../../ui/Page";
import { PriceSource, useSourceName } from "../../ui/PriceSource";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Quoted } from "../../ui/Said";
import { Chip } from "../../ui/Status";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { usePermitted } from "../queries";

import { pricesQuery } from "./queries";

const POLL_MS = 30_000;

/** What each source says of each coin, and which of it is used. */
export function PricesPage() {
  const { t } = useWords();
  const query = useQuery({ ...pricesQuery, refetchInterval: POLL_MS });
  return (
    <Page title={t("nav.prices")} lead={t("prices.lead")}>
      <QueryView query={query} lines={8}>
        {(seen) => (
          <>
            <Section title={t("prices.sources")} flush>
              {seen.sources.length === 0 ? (
                <Empty title={t("prices.noSources")} />
              ) : (
                <Plain
                  label={t("prices.sources")}
                  rows={seen.sources}
                  rowKey={(one) => one.name}
                  columns={[
                    { id: "name", title: t("record.name"), cell: (one) => <SourceName of={one.name} /> },
                    {
                      id: "state",
                      title: t("record.state"),
                      cell: (one) => <SourceState source={one} prices={seen.prices} />,
                    },
                    {
                      id: "why",
                      title: t("record.why"),
                      cell: (one) => one.reason ?? <Doubts doubts={doubtsOf(one.name, seen.prices)} />,
                    },
                    { id: "acts", title: "", atEnd: true, cell: (one) => <SourceActs source={one} /> },
                  ]}
                />
              )}
            </Section>
            <WithoutPrice prices={seen.prices} />
            <Section title={t("prices.coins", { currency: seen.currency.toUpperCase() })} flush>
              {seen.prices.length === 0 ? (
                <Empty title={t("prices.none")} />
              ) : (
                <Plain
                  label={t("nav.prices")}
                  rows={seen.prices}
                  rowKey={(one) => one.token}
                  columns={[
                    { id: "token", title: t("common:payments.token"), cell: (one) => <b>{one.token}</b> },
                    {
                      id: "rate",
                      title: t("prices.used"),
                      atEnd: true,
                      cell: (one) => <Used price={one} />,
                    },
                    {
                      id: "source",
                      title: t("prices.source"),
                      cell: (one) => (one.source === null ? <None /> : <PriceSource of={one.source} />),
                    },
                    {
                      id: "spread",
                      title: t("prices.spread"),
                      atEnd: true,
                      cell: (one) =>
                        one.spreadPercent === null ? <None /> : <span className="number">{one.spreadPercent}</span>,
                    },
                    { id: "all", title: t("prices.said"), cell: (one) => <Said sources={one.sources} /> },
                  ]}
                />
              )}
            </Section>
          </>
        )}
      </QueryView>
    </Page>
  );
}

/** A source by its name, with the one that it has in the operator's file where nobody would know it by that. */
function SourceName({ of }: { readonly of: string }) {
  const name = useSourceName()(of);
  return (
    <>
      <b>{name}</b>
      {name.toLowerCase() !== of && (
        <>
          {" "}
          <code className="muted">{of}</code>
        </>
      )}
    </>
  );
}

/** What it means that coins have no price, and what can be done about it; nothing while all have one. */
function WithoutPrice({ prices }: { readonly prices: readonly Schemas["CoinPrices"][] }) {
  const { t, i18n } = useWords();
  const without = prices.filter((one) => one.rate === null);
  const codes = new Set(without.map((one) => one.refusedCode ?? ("NO_PRICE" as const)));
  if (without.length === 0) return null;
  const coins = showList(
    without.map((one) => one.token),
    i18n.language,
  );
  return (
    <Section title={t("prices.without")}>
      <div className="stack" role="status">
        <p>{t("prices.withoutWords", { coins })}</p>
        <ul>
          {[...codes].map((code) => (
            <li key={code}>
              <b>{t(`prices.refused.${code}`)}</b>: {t(`prices.remedy.${code}`)}
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
}

/** What is used, or why nothing is. */
function Used({ price: { rate, refused, refusedCode } }: { readonly price: Schemas["CoinPrices"] }) {
  const { t } = useWords();
  if (rate === null) {
    if (refusedCode !== null) return t(`prices.refused.${refusedCode}`);
    return refused === null ? <None /> : <Quoted words={refused} />;
  }
  return (
    <span className="number">
      <Rate value={rate} />
    </span>
  );
}

function Said({ sources }: { readonly sources: readonly Schemas["PriceSeen"][] }) {
  const meaning = useMeaning();
  if (sources.length === 0) return <None />;
  return (
    <ul>
      {sources.map((one) => (
        <li key={one.source}>
          <span className="number">
            <Rate value={one.price} />
          </span>{" "}
          <span className="muted">
            <PriceSource of={one.source} />
            {one.status !== "used" && ` · ${meaning("price", one.status)}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Return of which coins a source is not believed, by why. */
function doubtsOf(name: string, prices: readonly Schemas["CoinPrices"][]): ReadonlyMap<string, readonly string[]> {
  const doubts = new Map<string, readonly string[]>();
  for (const { token, sources } of prices) {
    for (const { source, status } of sources) {
      if (source !== name || status === "used") continue;
      doubts.set(status, [...(doubts.get(status) ?? []), token]);
    }
  }
  return doubts;
}

/** Why a source is not believed, and of which coins. */
function Doubts({ doubts }: { readonly doubts: ReturnType<typeof doubtsOf> }) {
  const { i18n } = useWords();
  const meaning = useMeaning();
  if (doubts.size === 0) return <None />;
  return [...doubts].map(([status, tokens]) => (
    <div key={status}>
      {meaning("price", status)}: <bdi>{showList(tokens, i18n.language)}</bdi>
    </div>
  ));
}

interface SourceStateProps {
  readonly source: Schemas["SourceView"];
  readonly prices: readonly Schemas["CoinPrices"][];
}

function SourceState({ source: { name, isSetAside }, prices }: SourceStateProps) {
  const { t } = useWords();
  if (isSetAside) return <Chip tone="care">{t("prices.isAside")}</Chip>;
  if (doubtsOf(name, prices).size > 0) return <Chip tone="care">{t("prices.isDoubted")}</Chip>;
  const isHeard = prices.some(({ sources }) => sources.some(({ source }) => source === name));
  return <Chip tone={isHeard ? "good" : "care"}>{t(isHeard ? "prices.isUsed" : "prices.isSilent")}</Chip>;
}

function SourceActs({ source }: { readonly source: Schemas["SourceView"] }) {
  const { t } = useWords();
  const client = useQueryClient();
  const mayChange = usePermitted("prices.change");
  const name = useSourceName()(source.name);
  if (!mayChange) return null;
  const params = { path: { name: source.name } };
  const changed = () => client.invalidateQueries({ queryKey: ["prices"] });
  if (source.isSetAside) {
    return (
      <ActButton
        isSmall
        wantsReason
        act={t("prices.takeBack")}
        title={t("prices.takeBackTitle", { name })}
        onConfirm={async (reason) => {
          await unwrap(api.POST("/api/admin/prices/sources/{name}/take-back", { params, body: { reason } }));
          await changed();
        }}
      >
        <p>{t("prices.takeBackWords")}</p>
      </ActButton>
    );
  }
  return (
    <ActButton
      isSmall
      isDangerous
      wantsReason
      act={t("prices.setAside")}
      title={t("prices.setAsideTitle", { name })}
      onConfirm={async (reason) => {
        await unwrap(api.POST("/api/admin/prices/sources/{name}/set-aside", { params, body: { reason } }));
        await changed();
      }}
    >
      <p>{t("prices.setAsideWords")}</p>
    </ActButton>
  );
}
