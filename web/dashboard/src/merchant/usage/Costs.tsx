import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { Fiat } from "../../ui/Amount";
import { numbers } from "../../ui/format";
import type { Column } from "../../ui/List";
import { None } from "../../ui/None";
import { Facts, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import type { Schemas } from "../queries";

import { Count } from "./Count";
import { costsQuery } from "./queries";

const BY_CHAIN = ["payment", "payout", "refund", "withdrawal", "collection", "swap", "bridge"] as const;

type Config = Schemas["CalculatorConfig"];
type Chain = Config["chains"][number];
type Tier = Config["tiers"][number];
type Pack = Config["packs"][number];

/** What operations cost in credits, and what credits cost in money. */
export function Costs() {
  const { t } = useTranslation();
  const query = useQuery(costsQuery);
  return (
    <>
      <Section title={t("usage.costs")}>
        <QueryView query={query}>{({ chains, weights }) => <Weights chains={chains} weights={weights} />}</QueryView>
      </Section>
      {query.data !== undefined && (query.data.tiers.length > 0 || query.data.packs.length > 0) && (
        <Section title={t("usage.buy")}>
          <Prices tiers={query.data.tiers} packs={query.data.packs} />
        </Section>
      )}
    </>
  );
}

function Weights({ chains, weights }: Pick<Config, "chains" | "weights">) {
  const { t } = useTranslation();
  const columns: readonly Column<Chain>[] = [
    { id: "chain", title: t("payments.chain"), cell: (one) => <b>{one.name}</b> },
    ...BY_CHAIN.map((operation) => ({
      id: operation,
      title: t(`usage.operations.${operation}`),
      atEnd: true,
      cell: ({ chain }: Chain) => {
        const weight = weights.chains[chain]?.[operation] ?? weights.chains.default?.[operation];
        return weight === undefined || weight === null ? <None /> : <Count value={weight} />;
      },
    })),
  ];
  return (
    <div className="stack">
      <p>{t("usage.costsWords")}</p>
      <Plain label={t("usage.costs")} columns={columns} rows={chains} rowKey={(one) => one.chain} />
      <Facts
        facts={[
          [t("usage.operations.webhook_delivery"), <Count key="delivery" value={weights.webhookDelivery} />],
          [t("usage.operations.api_method"), <Count key="request" value={weights.apiMethod} />],
          [t("usage.operations.tracker"), <Count key="tracker" value={weights.tracker} />],
        ]}
      />
    </div>
  );
}

function Prices({ tiers, packs }: Pick<Config, "tiers" | "packs">) {
  const { t } = useTranslation();
  const ofTiers: readonly Column<Tier>[] = [
    { id: "name", title: t("usage.tier"), cell: (one) => <b>{one.name}</b> },
    {
      id: "credits",
      title: t("usage.credits"),
      atEnd: true,
      cell: (one) => <Span from={one.minCpt} to={one.maxCpt} />,
    },
    {
      id: "price",
      title: t("usage.per10k"),
      atEnd: true,
      cell: (one) => <Fiat value={one.pricePer10kUsd} currency="usd" />,
    },
  ];
  const ofPacks: readonly Column<Pack>[] = [
    { id: "name", title: t("usage.pack"), cell: (one) => <b>{one.name}</b> },
    { id: "credits", title: t("usage.credits"), atEnd: true, cell: (one) => <Count value={one.cpt} /> },
    { id: "price", title: t("usage.price"), atEnd: true, cell: (one) => <Fiat value={one.priceUsd} currency="usd" /> },
  ];
  return (
    <div className="stack">
      <p>{t("usage.buyWords")}</p>
      {tiers.length > 0 && (
        <Plain label={t("usage.tier")} columns={ofTiers} rows={tiers} rowKey={(one) => `${one.name} ${one.minCpt}`} />
      )}
      {packs.length > 0 && (
        <Plain label={t("usage.pack")} columns={ofPacks} rows={packs} rowKey={(one) => `${one.name} ${one.cpt}`} />
      )}
    </div>
  );
}

/** From how many to how many; the last tier has no end. */
function Span({ from, to }: { readonly from: number; readonly to: number | null }) {
  const { i18n } = useTranslation();
  const numerals = numbers(i18n.language);
  return (
    <bdi dir="ltr" className="number">
      {to === null ? `${numerals.format(from)}+` : `${numerals.format(from)}–${numerals.format(to)}`}
    </bdi>
  );
}
