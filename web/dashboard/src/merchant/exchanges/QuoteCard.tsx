import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Amount, Rate } from "../../ui/Amount";
import { Arrow } from "../../ui/Arrow";
import { Confirm } from "../../ui/Confirm";
import { Facts, Section } from "../../ui/Page";
import { ratio } from "../../ui/units";
import { useCountdown } from "../../ui/useCountdown";
import { Moment } from "../../ui/When";
import { useProjectId } from "../project";

import type { Exchange } from "./queries";
import { execute, isSwap, QUOTE_LIFE_MS, type Order, type Quote } from "./quoting";

interface QuoteCardProps {
  readonly order: Order;
  readonly quote: Quote;
  readonly at: number;
  readonly slippage: number;
  readonly isAsking: boolean;
  readonly onAskAgain: () => void;
  readonly onDone: (made: Exchange) => Promise<void>;
}

/** What an exchange would bring, for how long that may be believed, and the way to do it. */
export function QuoteCard({ order, quote, at, slippage, isAsking, onAskAgain, onDone }: QuoteCardProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const left = useCountdown(at + QUOTE_LIFE_MS);
  const [isOpen, setOpen] = useState(false);
  const isOver = left === 0;
  const act = t(isSwap(order) ? "exchange.swap" : "exchange.bridge");
  return (
    <Section
      title={t("exchange.quote")}
      actions={
        <span role="timer" className={isOver ? undefined : "muted number"}>
          {isOver ? t("exchange.over") : t("exchange.left", { count: left })}
        </span>
      }
    >
      <div className="stack">
        <Amounts quote={quote} />
        <div className="row">
          {isOver ? (
            <Button loading={isAsking} onClick={onAskAgain}>
              {t("exchange.askAgain")}
            </Button>
          ) : (
            <Button
              onClick={() => {
                setOpen(true);
              }}
            >
              {act}
            </Button>
          )}
        </div>
      </div>
      {isOpen && (
        <Confirm
          title={t(isSwap(order) ? "exchange.swapTitle" : "exchange.bridgeTitle")}
          act={act}
          isDangerous
          isBlocked={isOver}
          onConfirm={async () => {
            await onDone(await execute(projectId, order, slippage));
          }}
          onClose={() => {
            setOpen(false);
          }}
        >
          <p>
            <Amount value={quote.srcAmount} token={quote.srcToken} /> · {quote.srcChain} <Arrow />{" "}
            <Amount value={quote.dstAmount} token={quote.destToken} /> · {quote.destChain}
          </p>
          <p>{t("exchange.words", { percent: slippage })}</p>
          <p role="timer" className="muted number">
            {isOver ? t("exchange.overInDialog") : t("exchange.left", { count: left })}
          </p>
        </Confirm>
      )}
    </Section>
  );
}

function Amounts({ quote }: { readonly quote: Quote }) {
  const { t } = useTranslation();
  const { platformFee, fees = [], fillDeadline = null, estimatedFillSeconds = null } = quote;
  const rate = ratio(quote.srcAmount, quote.dstAmount);
  return (
    <Facts
      facts={[
        [
          t("exchange.give"),
          <span key="give">
            <Amount value={quote.srcAmount} token={quote.srcToken} /> · {quote.srcChain}
          </span>,
        ],
        [
          t("exchange.get"),
          <b key="get">
            <Amount value={quote.dstAmount} token={quote.destToken} /> · {quote.destChain}
          </b>,
        ],
        [
          t("payment.rate"),
          rate === null ? null : (
            <bdi key="rate" dir="ltr" className="number">
              1 {quote.srcToken} = <Rate value={rate} /> {quote.destToken}
            </bdi>
          ),
        ],
        [
          t("exchange.platformFee"),
          platformFee === null ? null : <Amount key="fee" value={platformFee.amount} token={platformFee.token} />,
        ],
        ...fees.map((one) => [one.name, <Amount key={one.name} value={one.amount} token={one.token} />] as const),
        [t("exchange.provider"), quote.provider],
        [
          t("exchange.takes"),
          estimatedFillSeconds === null ? null : t("exchange.seconds", { count: estimatedFillSeconds }),
        ],
        [t("exchange.deadline"), fillDeadline === null ? null : <Moment key="deadline" at={fillDeadline} />],
      ]}
    />
  );
}
