/** What the overviews of both apps show alike. */
import { useTranslation } from "react-i18next";

import { ChainName, useChainName } from "./ChainName";
import { Amount, Fiat } from "./Amount";
import { Bars } from "./Bars";
import { Choice } from "./Choice";
import { numbers, showAbout, showDay, showFiat, showHour, showPercent } from "./format";
import { None } from "./None";
import { Figures, Section } from "./Page";
import { Plain } from "./Plain";
import { Shares, Stacks } from "./Stacks";
import { toneOf } from "./Status";
import { plus } from "./units";

const STATES = [
  "pending",
  "detected",
  "confirming",
  "paid",
  "overpaid",
  "underpaid",
  "expired",
  "failed",
  "refunded",
] as const;
type State = (typeof STATES)[number];

interface Payments {
  readonly made: number;
  readonly open: number;
  readonly paid: number;
  readonly conversionPercent: string | null;
  readonly states: Readonly<Record<State, number>>;
}

interface Turnover {
  readonly payments: Payments;
  readonly deposits: number;
  readonly fiat: string;
  readonly unpriced: number;
  readonly coins: readonly {
    readonly chain: string;
    readonly token: string;
    readonly contractAddress: string | null;
    readonly deposits: number;
    readonly amount: string;
    readonly fiat: string | null;
  }[];
  readonly series: readonly {
    readonly beginsAt: string;
    readonly deposits: number;
    readonly fiat: string;
    readonly payments: Payments;
  }[];
}

export const SPANS = ["hours", "week", "month", "year"] as const;
export type SpanName = (typeof SPANS)[number];

/** How far back; the gateway knows the others by its own clock. */
const DAYS: Readonly<Partial<Record<SpanName, number>>> = { week: 7, year: 365 };
/** Return what the API is asked for: whole days or hours of the reader's own time zone. */
export function askedFor(span: SpanName, now: number) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const days = DAYS[span];
  // Some days have 23 or 25 hours: the calendar knows which.
  const from = new Date(now);
  if (days !== undefined) from.setDate(from.getDate() - (days - 1));
  return {
    ...(days === undefined ? {} : { from: from.toISOString() }),
    step: span === "hours" ? ("hour" as const) : ("day" as const),
    timeZone,
  };
}

interface SpanChoiceProps {
  readonly value: SpanName;
  readonly onSpan: (span: SpanName) => void;
}

export function SpanChoice({ value, onSpan }: SpanChoiceProps) {
  const { t } = useTranslation();
  return (
    <Choice
      label={t("overview.span")}
      size="compact-sm"
      value={value}
      options={SPANS.map((one) => ({ value: one, label: t(`overview.spans.${one}`) }))}
      onChoice={onSpan}
    />
  );
}

interface TurnoverViewProps {
  readonly turnover: Turnover;
  readonly currency: string;
  readonly step: "day" | "hour";
}

/** What came in, what became of payments, and how both went over the time. */
export function TurnoverView({ turnover, currency, step }: TurnoverViewProps) {
  const { t, i18n } = useTranslation();
  const number = numbers(i18n.language);
  const when = step === "day" ? showDay : showHour;
  const { payments } = turnover;
  const isPriced = Number(turnover.fiat) > 0;
  return (
    <>
      <Section title={t("overview.volume")}>
        <div className="stack">
          <Figures
            figures={[
              [t("overview.cameIn"), <Fiat key="fiat" value={turnover.fiat} currency={currency} />],
              [t("overview.deposits"), number.format(turnover.deposits)],
              [t("overview.made"), number.format(payments.made)],
              [
                t("overview.conversion"),
                payments.conversionPercent === null ? null : showPercent(payments.conversionPercent, i18n.language),
              ],
              [t("overview.unpriced"), turnover.unpriced === 0 ? null : number.format(turnover.unpriced)],
            ]}
          />
          {turnover.coins.length === 0 && <p className="muted">{t("overview.nothing")}</p>}
          {turnover.deposits > 0 && (
            <Bars
              label={t("overview.volume")}
              onAxis={(size) =>
                isPriced
                  ? showAbout(size, currency, i18n.language)
                  : Number.isInteger(size)
                    ? number.format(size)
                    : null
              }
              bars={turnover.series.map((part) => ({
                key: part.beginsAt,
                label: when(part.beginsAt, i18n.language),
                // Where no price is known at all, how many came in says more than nothing.
                size: isPriced ? Number(part.fiat) : part.deposits,
                text: `${showFiat(part.fiat, currency, i18n.language)} · ${t("overview.paidOf", {
                  paid: number.format(part.payments.paid),
                  made: number.format(part.payments.made),
                })}`,
              }))}
            />
          )}
        </div>
      </Section>
      {payments.made > 0 && (
        <Section title={t("overview.states")}>
          <Stacks
            label={t("overview.states")}
            layers={STATES.map((one) => ({ key: one, label: t(`status.${one}`), tone: toneOf(one) }))}
            stacks={turnover.series.map((part) => ({
              key: part.beginsAt,
              label: when(part.beginsAt, i18n.language),
              counts: STATES.map((one) => part.payments.states[one]),
            }))}
          />
        </Section>
      )}
      <ByChain coins={turnover.coins} currency={currency} />
      {turnover.coins.length > 0 && (
        <Section title={t("overview.coins")} flush>
          <Plain
            label={t("overview.coins")}
            rows={turnover.coins}
            rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.token}`}
            columns={[
              { id: "token", title: t("payments.token"), cell: (one) => <b>{one.token}</b> },
              {
                id: "chain",
                title: t("payments.chain"),
                isBesideFirst: true,
                cell: (one) => <ChainName of={one.chain} />,
              },
              {
                id: "deposits",
                title: t("overview.deposits"),
                atEnd: true,
                cell: (one) => <span className="number">{number.format(one.deposits)}</span>,
              },
              {
                id: "amount",
                title: t("payments.amount"),
                atEnd: true,
                cell: (one) => <Amount value={one.amount} token={one.token} />,
              },
              {
                id: "fiat",
                title: t("overview.worth"),
                atEnd: true,
                cell: (one) => (one.fiat === null ? <None /> : <Fiat value={one.fiat} currency={currency} />),
              },
            ]}
          />
        </Section>
      )}
    </>
  );
}

interface ByChainProps {
  readonly coins: Turnover["coins"];
  readonly currency: string;
}

/** What came in on each chain, of what has a price; where there is one chain alone, nothing is compared. */
function ByChain({ coins, currency }: ByChainProps) {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  const sums = new Map<string, string>();
  for (const { chain, fiat } of coins) if (fiat !== null) sums.set(chain, plus(sums.get(chain) ?? "0", fiat));
  if (sums.size < 2) return null;
  return (
    <Section title={t("overview.chains")}>
      <Shares
        label={t("overview.chains")}
        shares={[...sums].map(([chain, sum]) => ({
          key: chain,
          label: chainName(chain),
          size: Number(sum),
          text: showFiat(sum, currency, i18n.language),
        }))}
      />
    </Section>
  );
}
