import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { ErrorNote } from "../../ui/Feedback";
import { SearchSelect } from "../../ui/SearchSelect";
import { Text } from "../../ui/Text";
import { toUnits } from "../../ui/units";
import { useAct } from "../../ui/useAct";
import { useRefused } from "../../ui/useRefused";
import { api, unwrap } from "../api";
import { coinKey } from "../coins/queries";
import { feesQuery } from "../exchanges/queries";
import { QuoteCard } from "../exchanges/QuoteCard";
import { quote, type Order, type Quote } from "../exchanges/quoting";
import { Slippage } from "../exchanges/Slippage";
import { useTargets } from "../exchanges/targets";
import { once } from "../once";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";
import { BalanceAmount } from "../wallet/BalanceAmount";

interface Asked {
  readonly order: Order;
  readonly amount: string;
  readonly to: string;
  readonly quote: Quote;
  readonly at: number;
}

/** Paying somebody in another coin than what is given: a quote first, as of any swap or bridge. */
export function SwapPayout({ balance }: { readonly balance: Schemas["BalanceView"] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: fees } = useQuery(feesQuery(projectId));
  const [toAddress, setToAddress] = useState("");
  const [coin, setCoin] = useState<string | null>(null);
  const [amount, setAmount] = useState("");
  const [slippage, setSlippage] = useState<number | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  // How often something was changed: a quote is for what was typed when it was asked for.
  const changes = useRef(0);
  const targets = useTargets(balance);
  const target = targets.groups.flatMap((group) => group.items).find((one) => one.value === coin);
  const units = toUnits(amount.trim(), balance.decimals);
  const percent = slippage ?? fees?.defaultSlippage;

  // What is sent is what the dialog says, also where the operator changes the default meanwhile.
  const mostLost = (found: Quote) => slippage ?? found.slippagePercent;
  const refused = useRefused(coinKey(balance));
  const change = () => {
    changes.current += 1;
    setAsked(null);
    refused.forget();
  };
  const ask = useAct(async () => {
    if (target === undefined || units === null) return;
    const { chain: srcChain, token: srcToken } = balance;
    const order = { srcChain, srcToken, srcAmountRaw: units, destChain: target.chain, destToken: target.token };
    const before = changes.current;
    const isStill = () => changes.current === before;
    const found = await refused.noting(() => quote(projectId, order), isStill);
    if (isStill()) {
      setAsked({ order, amount: amount.trim(), to: toAddress.trim(), quote: found, at: Date.now() });
    }
  });

  async function pay({ order, amount: srcAmount, to, quote: found }: Asked): Promise<void> {
    const { srcChain, srcToken, destChain: chain, destToken: token } = order;
    const body = { chain, token, toAddress: to, srcChain, srcToken, srcAmount, slippage: mostLost(found) };
    const params = { path: { projectId } };
    const path = "/api/dashboard/projects/{projectId}/wallet/payout";
    // The same key as of other payouts: whatever becomes of one, there is none beside it.
    const { payout } = await once(`payout ${projectId}`, (idempotencyKey) =>
      unwrap(api.POST(path, { params, body: { ...body, idempotencyKey } })),
    );
    void client.invalidateQueries({ queryKey: ["project", projectId] });
    await navigate({ to: `/${projectId}/payouts/${payout.payoutId}` });
  }

  return (
    <>
      <form className="stack" onSubmit={ask.submit} onChange={change}>
        <Text
          label={t("payouts.to")}
          required
          autoComplete="off"
          spellCheck={false}
          value={toAddress}
          error={refused.of("toAddress")}
          onText={setToAddress}
        />
        <SearchSelect
          label={t("payouts.inCoin")}
          description={targets.why === null ? undefined : t(targets.why)}
          required
          value={coin}
          error={refused.of("destToken") ?? refused.of("destChain") ?? refused.of("token") ?? refused.of("chain")}
          data={targets.groups}
          onChoice={(value) => {
            change();
            setCoin(value);
          }}
        />
        <BalanceAmount
          label={t("payouts.give", { token: balance.token })}
          balance={balance}
          value={amount}
          refused={refused.of("srcAmountRaw") ?? refused.of("srcAmount")}
          onText={(text) => {
            change();
            setAmount(text);
          }}
        />
        <Slippage
          value={percent}
          refused={refused.of("slippage")}
          onChoice={(chosen) => {
            change();
            setSlippage(chosen);
          }}
        />
        {targets.error !== null && <ErrorNote error={targets.error} />}
        {ask.error !== null && <ErrorNote error={ask.error} />}
        <div className="row">
          <Button
            type="submit"
            variant={asked === null ? "filled" : "default"}
            loading={ask.isRunning}
            disabled={units === null || target === undefined || toAddress.trim() === ""}
          >
            {t(asked === null ? "exchange.ask" : "exchange.askAgain")}
          </Button>
        </div>
      </form>
      {asked !== null && (
        <QuoteCard
          key={asked.at}
          quote={asked.quote}
          at={asked.at}
          act={t("payouts.pay")}
          title={t("payouts.confirm")}
          words={t("payouts.swapWords", { percent: mostLost(asked.quote) })}
          isAsking={ask.isRunning}
          onAskAgain={() => void ask.run()}
          onConfirm={() => refused.noting(() => pay(asked))}
        >
          <Address value={asked.to} whole />
        </QuoteCard>
      )}
    </>
  );
}
