import { useTranslation } from "react-i18next";

import { Amount, Fiat, Rate } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { useMeaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import { Owed } from "../../ui/Owed";
import { Plain } from "../../ui/Plain";
import { PriceSource } from "../../ui/PriceSource";
import { When } from "../../ui/When";
import type { Schemas } from "../queries";

type Coin = Schemas["CoinBalance"];

interface BalancesProps {
  readonly of: Schemas["Balances"];
  readonly currency: string;
}

/** What there is of each coin, and what that is worth: at which price, who says so, and as of when. */
export function Balances({ of, currency }: BalancesProps) {
  const { t } = useTranslation();
  const meaning = useMeaning();
  const isOwed = of.coins.some((one) => !isNothing(one.receivable));
  if (of.coins.length === 0) return <Empty title={t("wallet.none")} />;
  return (
    <Plain
      label={t("wallet.balances")}
      rows={of.coins}
      rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.token}`}
      columns={[
        { id: "token", title: t("payments.token"), cell: (one) => <b>{one.token}</b> },
        {
          id: "chain",
          title: t("payments.chain"),
          isBesideFirst: true,
          cell: (one) => <ChainName of={one.chain} />,
        },
        { id: "available", title: t("wallet.available"), atEnd: true, cell: (one) => <Amount value={one.available} /> },
        { id: "pending", title: t("wallet.pending"), atEnd: true, cell: (one) => <Amount value={one.pending} /> },
        { id: "held", title: t("wallet.held"), atEnd: true, cell: (one) => <Amount value={one.held} /> },
        ...(isOwed
          ? [
              {
                id: "owed",
                title: meaning("balance", "receivable"),
                atEnd: true,
                cell: (one: Coin) => (isNothing(one.receivable) ? <None /> : <Owed receivable={one.receivable} />),
              },
            ]
          : []),
        {
          id: "price",
          title: t("payment.price"),
          atEnd: true,
          cell: (one) => <Price coin={one} currency={currency} />,
        },
        {
          id: "fiat",
          title: t("overview.worth"),
          atEnd: true,
          cell: (one) => <Worth coin={one} currency={currency} />,
        },
      ]}
    />
  );
}

interface CoinProps {
  readonly coin: Coin;
  readonly currency: string;
}

function isNothing(amount: string): boolean {
  return !/[1-9]/.test(amount);
}

/** What one of a coin is worth, who says so and since when. */
function Price({ coin, currency }: CoinProps) {
  const { price, priceSource, pricedAt } = coin;
  if (price === null) return <None />;
  return (
    <>
      <bdi dir="ltr" className="number">
        <Rate value={price} /> {currency.toUpperCase()}
      </bdi>
      <div className="muted">
        {priceSource !== null && <PriceSource of={priceSource} />} {pricedAt !== null && <When at={pricedAt} />}
      </div>
    </>
  );
}

function Worth({ coin, currency }: CoinProps) {
  const { t } = useTranslation();
  if (coin.fiat === null) return <span className="muted">{t("wallet.unpriced")}</span>;
  return <Fiat value={coin.fiat} currency={currency} />;
}
