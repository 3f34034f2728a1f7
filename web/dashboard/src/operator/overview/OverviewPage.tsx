import { Button } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { gatewayNow } from "../../api/clock";
import { AttentionView } from "../../ui/Attention";
import { ChainName } from "../../ui/ChainName";
import { Amount, Fiat } from "../../ui/Amount";
import { Choice } from "../../ui/Choice";
import { Earlier } from "../../ui/Earlier";
import { Empty } from "../../ui/Feedback";
import { numbers } from "../../ui/format";
import { None } from "../../ui/None";
import { SpanChoice, TurnoverView, askedFor, type SpanName } from "../../ui/Overview";
import { Facts, Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { useListSearch } from "../../ui/search";
import { api, unwrap, useWords, type Schemas } from "../api";
import { useNav } from "../nav";
import { usePermitted } from "../queries";

/** What waits for too long does so without anything that changes; everything else is told. */
const POLL_MS = 300_000;
/** Its sums are much to ask for: on a busy gateway something changes every second. */
const REST_MS = 10_000;
const MODES = ["live", "sandbox"] as const;
const FILTERS = ["mode"] as const;

/** What needs attention, what came in at all merchants, what it cost, and what the gateway holds. */
export function OverviewPage() {
  const { t, i18n } = useWords();
  const nav = useNav();
  const number = numbers(i18n.language);
  const counted = (count: number) => (count === 0 ? null : number.format(count));
  const [span, setSpan] = useState<SpanName>("month");
  const { filters, set } = useListSearch(FILTERS);
  const mode = filters.mode === "sandbox" ? "sandbox" : "live";
  const show = (one: (typeof MODES)[number]) => {
    set.mode(one === "live" ? "" : one);
  };
  const query = useQuery({
    queryKey: ["overview", span, mode],
    placeholderData: keepPreviousData,
    refetchInterval: POLL_MS,
    meta: { restMs: REST_MS },
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/admin/overview", { params: { query: { mode, ...askedFor(span, gatewayNow()) } }, signal })),
  });
  return (
    <Page
      title={t("nav.overview")}
      actions={
        <>
          <Choice
            label={t("common:mode.title")}
            size="compact-sm"
            value={mode}
            options={MODES.map((one) => ({ value: one, label: t(`common:mode.${one}`) }))}
            onChoice={show}
          />
          <SpanChoice value={span} onSpan={setSpan} />
        </>
      }
    >
      {/* What is of another mode or time would be taken for what was asked for. */}
      <Earlier isSo={query.isPlaceholderData}>
        <QueryView query={query} lines={8}>
          {(found) => (
            <>
              <AttentionView attention={found.attention} nav={nav} mode={mode} />
              {found.turnover.deposits === 0 && found.turnover.payments.made === 0 ? (
                <Section title={t("common:overview.volume")}>
                  <Empty title={t("common:overview.nothing")}>
                    {mode === "live" && (
                      <Button
                        variant="default"
                        onClick={() => {
                          show("sandbox");
                        }}
                      >
                        {t("overview.toSandbox")}
                      </Button>
                    )}
                  </Empty>
                </Section>
              ) : (
                <TurnoverView turnover={found.turnover} currency={found.currency} step={found.step} />
              )}
              <Section title={t("overview.fees")}>
                <Facts
                  facts={[
                    [
                      t("overview.exchangeFees"),
                      <Fiat key="taken" value={found.exchangeFees.fiat} currency={found.currency} />,
                    ],
                    [
                      t("overview.networkFees"),
                      <Fiat key="paid" value={found.networkFees.fiat} currency={found.currency} />,
                    ],
                    [t("overview.unpricedExchangeFees"), counted(found.exchangeFees.unpriced)],
                    [t("overview.unpricedNetworkFees"), counted(found.networkFees.unpriced)],
                  ]}
                />
              </Section>
              <Holdings held={found.held} currency={found.currency} />
            </>
          )}
        </QueryView>
      </Earlier>
    </Page>
  );
}

interface HoldingsProps {
  readonly held: Schemas["Held"];
  readonly currency: string;
}

function Holdings({ held, currency }: HoldingsProps) {
  const { t } = useWords();
  const mayReadMoney = usePermitted("money.read");
  return (
    <Section
      title={t("overview.held")}
      flush
      actions={
        held.coins.length > 0 && (
          <>
            {mayReadMoney && <Link to="/uncollected">{t("overview.toUncollected")}</Link>}
            <Fiat value={held.fiat} currency={currency} />
          </>
        )
      }
    >
      {held.coins.length === 0 ? (
        <Empty title={t("overview.nothingHeld")} />
      ) : (
        <Plain
          label={t("overview.held")}
          rows={held.coins}
          rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.token}`}
          columns={[
            { id: "token", title: t("common:payments.token"), cell: (one) => <b>{one.token}</b> },
            { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
            ...(["merchants", "onAddresses", "inWallets", "betweenChains", "gas"] as const).map((name) => ({
              id: name,
              title: t(`overview.${name}`),
              atEnd: true,
              cell: (one: Schemas["HeldCoin"]) => <Amount value={one[name]} />,
            })),
            {
              id: "fiat",
              title: t("common:overview.worth"),
              atEnd: true,
              cell: (one) => (one.fiat === null ? <None /> : <Fiat value={one.fiat} currency={currency} />),
            },
          ]}
        />
      )}
    </Section>
  );
}
