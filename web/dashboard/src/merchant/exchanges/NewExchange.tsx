import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { Amount } from "../../ui/Amount";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { SearchSelect } from "../../ui/SearchSelect";
import { toUnits } from "../../ui/units";
import { useAct } from "../../ui/useAct";
import { useRefused } from "../../ui/useRefused";
import { coinKey as keyOf } from "../coins/queries";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { Permitted } from "../Permitted";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";
import { BalanceAmount } from "../wallet/BalanceAmount";
import { walletQuery } from "../wallet/queries";

import { feesQuery } from "./queries";
import { execute, isSwap, quote, type Order, type Quote } from "./quoting";
import { QuoteCard } from "./QuoteCard";
import { Slippage } from "./Slippage";
import { useTargets } from "./targets";

type Balance = Schemas["BalanceView"];

/** Exchanging one coin of the wallet for another: a quote first, then the act. */
export function NewExchange() {
  const { t } = useTranslation();
  const wallet = useQuery(walletQuery(useProjectId()));
  return (
    <Page title={t("exchange.new")} lead={t("exchange.lead")}>
      <Permitted to="exchange">
        <NeedsSecondFactor />
        <QueryView query={wallet} lines={6}>
          {({ balances }) =>
            balances.length === 0 ? (
              <Section>
                <Empty title={t("wallet.none")} />
              </Section>
            ) : (
              <Form balances={balances} />
            )
          }
        </QueryView>
      </Permitted>
    </Page>
  );
}

interface Asked {
  readonly order: Order;
  readonly quote: Quote;
  /** When the answer came, by this machine's clock. */
  readonly at: number;
}

function Form({ balances }: { readonly balances: readonly Balance[] }) {
  const { t } = useTranslation();
  const chainName = useChainName();
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: fees } = useQuery(feesQuery(projectId));
  const [only] = balances.length === 1 ? balances : [];
  const [from, setFrom] = useState<string | null>(only === undefined ? null : keyOf(only));
  const [to, setTo] = useState<string | null>(null);
  const [amount, setAmount] = useState("");
  const [slippage, setSlippage] = useState<number | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  // How often something was changed.
  const changes = useRef(0);
  const given = balances.find((one) => keyOf(one) === from);
  const targets = useTargets(given);
  const target = targets.groups.flatMap((group) => group.items).find((one) => one.value === to);
  const units = given === undefined ? null : toUnits(amount.trim(), given.decimals);

  const refused = useRefused(from);
  const ask = useAct(async () => {
    if (given === undefined || target === undefined || units === null) return;
    const { chain: srcChain, token: srcToken } = given;
    const order = { srcChain, srcToken, srcAmountRaw: units, destChain: target.chain, destToken: target.token };
    const before = changes.current;
    // What was typed since is another order.
    const isStill = () => changes.current === before;
    const found = await refused.noting(() => quote(projectId, order), isStill);
    if (isStill()) setAsked({ order, quote: found, at: Date.now() });
  });
  // What was quoted is for what was typed then.
  const change = () => {
    changes.current += 1;
    setAsked(null);
    refused.forget();
  };

  return (
    <>
      <Section>
        <form className="stack" onSubmit={ask.submit} onChange={change}>
          <SearchSelect
            label={t("exchange.give")}
            required
            value={from}
            error={refused.of("srcToken") ?? refused.of("srcChain")}
            placeholder={t("payouts.choose")}
            data={balances.map((one) => ({ value: keyOf(one), label: `${one.token} · ${chainName(one.chain)}` }))}
            onChoice={(value) => {
              change();
              setFrom(value);
              setTo(null);
            }}
          />
          <BalanceAmount
            label={t("payments.amount")}
            balance={given}
            value={amount}
            refused={refused.of("srcAmountRaw")}
            onText={(text) => {
              change();
              setAmount(text);
            }}
          />
          {given !== undefined && (
            <p className="muted">
              {t("wallet.available")}: <Amount value={given.available} token={given.token} />
            </p>
          )}
          <SearchSelect
            label={t("exchange.get")}
            description={t(targets.why ?? "exchange.getWords")}
            required
            disabled={given === undefined}
            value={to}
            error={refused.of("destToken") ?? refused.of("destChain")}
            data={targets.groups}
            onChoice={(value) => {
              change();
              setTo(value);
            }}
          />
          <Slippage
            value={slippage ?? fees?.defaultSlippage}
            refused={refused.of("slippage")}
            onChoice={(percent) => {
              change();
              setSlippage(percent);
            }}
          />
          {targets.error !== null && <ErrorNote error={targets.error} />}
          {ask.error !== null && <ErrorNote error={ask.error} />}
          <div className="row">
            <Button
              type="submit"
              variant={asked === null ? "filled" : "default"}
              loading={ask.isRunning}
              disabled={units === null || target === undefined}
            >
              {t(asked === null ? "exchange.ask" : "exchange.askAgain")}
            </Button>
          </div>
        </form>
      </Section>
      {asked !== null && (
        <QuoteCard
          key={asked.at}
          quote={asked.quote}
          at={asked.at}
          isAsking={ask.isRunning}
          onAskAgain={() => void ask.run()}
          act={t(isSwap(asked.order) ? "exchange.swap" : "exchange.bridge")}
          title={t(isSwap(asked.order) ? "exchange.swapTitle" : "exchange.bridgeTitle")}
          words={t("exchange.words", { percent: slippage ?? asked.quote.slippagePercent })}
          onConfirm={async () => {
            const percent = slippage ?? asked.quote.slippagePercent;
            const made = await refused.noting(() => execute(projectId, asked.order, percent));
            void client.invalidateQueries({ queryKey: ["project", projectId] });
            await navigate({ to: `/${projectId}/exchanges/${made.txnId}` });
          }}
        />
      )}
    </>
  );
}
