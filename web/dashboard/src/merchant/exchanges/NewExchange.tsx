import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { Amount } from "../../ui/Amount";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { SearchSelect } from "../../ui/SearchSelect";
import { coinKey as keyOf } from "../coins/queries";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { Permitted } from "../Permitted";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";
import { BalanceAmount } from "../wallet/BalanceAmount";
import { useNamed, walletQuery } from "../wallet/queries";

import { execute, isSwap } from "./quoting";
import { QuoteCard } from "./QuoteCard";
import { Slippage } from "./Slippage";
import { useQuoting } from "./useQuoting";

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

function Form({ balances: all }: { readonly balances: readonly Balance[] }) {
  const balances = useNamed(all);
  const { t } = useTranslation();
  const chainName = useChainName();
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [only] = balances.length === 1 ? balances : [];
  const [from, setFrom] = useState<string | null>(only === undefined ? null : keyOf(only));
  const given = balances.find((one) => keyOf(one) === from);
  const form = useQuoting(given);
  const { ask, asked, refused, targets } = form;

  return (
    <>
      <Section>
        <form className="stack" onSubmit={ask.submit} onChange={form.change}>
          <SearchSelect
            label={t("exchange.give")}
            required
            value={from}
            error={refused.of("srcToken") ?? refused.of("srcChain")}
            placeholder={t("payouts.choose")}
            data={balances.map((one) => ({ value: keyOf(one), label: `${one.token} · ${chainName(one.chain)}` }))}
            onChoice={(value) => {
              setFrom(value);
              form.setTo(null);
            }}
          />
          <BalanceAmount
            label={t("payments.amount")}
            balance={given}
            value={form.amount}
            refused={refused.of("srcAmountRaw")}
            onText={form.setAmount}
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
            value={form.to}
            error={refused.of("destToken") ?? refused.of("destChain")}
            data={targets.groups}
            onChoice={form.setTo}
          />
          <Slippage value={form.slippage} refused={refused.of("slippage")} onChoice={form.setSlippage} />
          {targets.error !== null && <ErrorNote error={targets.error} />}
          {ask.error !== null && <ErrorNote error={ask.error} />}
          <div className="row">
            <Button
              type="submit"
              variant={asked === null ? "filled" : "default"}
              loading={ask.isRunning}
              disabled={!form.isComplete}
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
          words={t("exchange.words", { percent: form.mostLost(asked.quote) })}
          onConfirm={async () => {
            const made = await refused.noting(() => execute(projectId, asked.order, form.mostLost(asked.quote)));
            void client.invalidateQueries({ queryKey: ["project", projectId] });
            await navigate({ to: `/${projectId}/exchanges/${made.txnId}` });
          }}
        />
      )}
    </>
  );
}
