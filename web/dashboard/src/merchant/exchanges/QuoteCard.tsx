import { Button } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Amount, Rate } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { Arrow } from "../../ui/Arrow";
import { Confirm } from "../../ui/Confirm";
import { Facts, Section } from "../../ui/Page";
import { ratio } from "../../ui/units";
import { useCountdown } from "../../ui/useCountdown";
import { Moment } from "../../ui/When";

import { InMode } from "../InMode";

import { QUOTE_LIFE_MS, type Quote } from "./quoting";

interface QuoteCardProps {
  readonly quote: Quote;
  /** When it came, by this machine's clock. */
  readonly at: number;
  /** What the buttons say that do it, what is asked then, and what is said of it. */
  readonly act: string;
  readonly title: string;
  readonly words: string;
  /** What else is to be known before it is done. */
  readonly children?: ReactNode;
  readonly isAsking: boolean;
  readonly onAskAgain: () => void;
  readonly onConfirm: () => Promise<void>;
}

/** What an exchange would bring, for how long that may be believed, and the way to do it. */
export function QuoteCard({ quote, at, act, title, words, children, ...asking }: QuoteCardProps) {
  const { isAsking, onAskAgain, onConfirm } = asking;
  const { t } = useTranslation();
  const left = useCountdown(at + QUOTE_LIFE_MS);
  const [isOpen, setOpen] = useState(false);
  const isOver = left === 0;
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
          title={title}
          act={act}
          isDangerous
          isBlocked={isOver}
          onConfirm={onConfirm}
          onClose={() => {
            setOpen(false);
          }}
        >
          <p>
            <Amount value={quote.srcAmount} token={quote.srcToken} /> · <ChainName of={quote.srcChain} /> <Arrow />{" "}
            <Amount value={quote.dstAmount} token={quote.destToken} /> · <ChainName of={quote.destChain} />
          </p>
          {children}
          <p>
            <InMode />
          </p>
          <p>{words}</p>
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
            <Amount value={quote.srcAmount} token={quote.srcToken} /> · <ChainName of={quote.srcChain} />
          </span>,
        ],
        [
          t("exchange.get"),
          <b key="get">
            <Amount value={quote.dstAmount} token={quote.destToken} /> · <ChainName of={quote.destChain} />
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
        // What a provider calls a fee of its own begins as every other name does.
        ...fees.map(
          (one) => [capitalized(one.name), <Amount key={one.name} value={one.amount} token={one.token} />] as const,
        ),
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

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
