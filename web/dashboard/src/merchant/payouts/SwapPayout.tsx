import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { ErrorNote } from "../../ui/Feedback";
import { SearchSelect } from "../../ui/SearchSelect";
import { Text } from "../../ui/Text";
import { api, unwrap } from "../api";
import { QuoteCard } from "../exchanges/QuoteCard";
import { Slippage } from "../exchanges/Slippage";
import { useQuoting, type Asked } from "../exchanges/useQuoting";
import { once } from "../../api/once";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";
import { BalanceAmount } from "../wallet/BalanceAmount";

/** Paying somebody in another coin than what is given: a quote first, as of any swap or bridge. */
export function SwapPayout({ balance }: { readonly balance: Schemas["BalanceView"] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [toAddress, setToAddress] = useState("");
  const form = useQuoting(balance);
  const { ask, asked, refused, targets } = form;
  // Changed, it takes the quote away: what is paid is what stood there when that was asked for.
  const to = toAddress.trim();

  async function pay({ order, amount: srcAmount, quote: found }: Asked): Promise<void> {
    const { srcChain, srcToken, destChain: chain, destToken: token } = order;
    const body = { chain, token, toAddress: to, srcChain, srcToken, srcAmount, slippage: form.mostLost(found) };
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
    <div className="stack">
      <form className="stack" onSubmit={ask.submit} onChange={form.change}>
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
          value={form.to}
          error={refused.of("destToken") ?? refused.of("destChain") ?? refused.of("token") ?? refused.of("chain")}
          data={targets.groups}
          onChoice={form.setTo}
        />
        <BalanceAmount
          label={t("payouts.give", { token: balance.token })}
          balance={balance}
          value={form.amount}
          refused={refused.of("srcAmountRaw") ?? refused.of("srcAmount")}
          onText={form.setAmount}
        />
        <Slippage value={form.slippage} refused={refused.of("slippage")} onChoice={form.setSlippage} />
        {targets.error !== null && <ErrorNote error={targets.error} />}
        {ask.error !== null && <ErrorNote error={ask.error} />}
        <div className="row">
          <Button
            type="submit"
            variant={asked === null ? "filled" : "default"}
            loading={ask.isRunning}
            disabled={!form.isComplete || to === ""}
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
          words={t("payouts.swapWords", { percent: form.mostLost(asked.quote) })}
          isAsking={ask.isRunning}
          onAskAgain={() => void ask.run()}
          onConfirm={() => refused.noting(() => pay(asked))}
        >
          <Address value={to} whole />
        </QuoteCard>
      )}
    </div>
  );
}
