import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { api, unwrap } from "../api";
import { Amount } from "../../ui/Amount";
import { Choice } from "../../ui/Choice";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { toUnits } from "../../ui/units";
import { useRefused } from "../../ui/useRefused";
import { coinKey } from "../coins/queries";
import { feesQuery } from "../exchanges/queries";
import { InMode } from "../InMode";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { once } from "../../api/once";
import { Permitted } from "../Permitted";
import { usePermitted, useProjectId } from "../project";
import type { Schemas } from "../queries";
import { BalanceAmount } from "../wallet/BalanceAmount";
import { BalanceSelect } from "../wallet/BalanceSelect";
import { useNamed, walletQuery } from "../wallet/queries";

import { Batch } from "./Batch";
import { SwapPayout } from "./SwapPayout";
import { useRecipient } from "./useRecipient";

type Balance = Schemas["BalanceView"];

/** Paying somebody out of the wallet, or many from a CSV file. */
export function NewPayout() {
  const { t } = useTranslation();
  const query = useQuery(walletQuery(useProjectId()));
  return (
    <Page title={t("payouts.new")}>
      <Permitted to="payouts">
        <NeedsSecondFactor />
        <Section>
          <QueryView query={query}>
            {({ balances }) =>
              balances.length === 0 ? <Empty title={t("wallet.none")} /> : <Form balances={balances} />
            }
          </QueryView>
        </Section>
      </Permitted>
    </Page>
  );
}

function Form({ balances: all }: { readonly balances: readonly Balance[] }) {
  const balances = useNamed(all);
  const { t } = useTranslation();
  const [kind, setKind] = useState<"one" | "swap" | "many">("one");
  const mayQuote = usePermitted("exchange");
  const { data: fees } = useQuery(feesQuery(useProjectId()));
  const maySwap = mayQuote && fees?.payoutSwapEnabled === true;
  const [chosen, setChosen] = useState<string | null>(null);
  const balance = balances.find((one) => coinKey(one) === chosen);
  return (
    <div className="stack">
      <Choice
        label={t("payouts.howMany")}
        value={kind}
        options={[
          { value: "one", label: t("payouts.one") },
          ...(maySwap ? [{ value: "swap", label: t("payouts.swap") } as const] : []),
          { value: "many", label: t("payouts.many") },
        ]}
        onChoice={setKind}
      />
      <BalanceSelect balances={balances} value={chosen} onChoice={setChosen} />
      {balance !== undefined && (
        <p>
          {t("wallet.available")}: <Amount value={balance.available} token={balance.token} />
        </p>
      )}
      {balance !== undefined && (
        <>
          {/* All stay, whichever is seen: what was typed into another one is still there. */}
          <div hidden={kind !== "one"}>
            <Single balance={balance} />
          </div>
          {maySwap && (
            <div hidden={kind !== "swap"}>
              <SwapPayout key={coinKey(balance)} balance={balance} />
            </div>
          )}
          <div hidden={kind !== "many"}>
            <Batch balance={balance} />
          </div>
        </>
      )}
    </div>
  );
}

function Single({ balance }: { readonly balance: Balance }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [amount, setAmount] = useState("");
  const [isAsked, setAsked] = useState(false);
  const refused = useRefused(coinKey(balance));
  const to = useRecipient(balance.chain, refused, { label: t("payouts.to") });

  async function pay(): Promise<void> {
    const { chain, token } = balance;
    const body = { chain, token, amount: amount.trim(), ...to.body };
    const params = { path: { projectId } };
    const path = "/api/dashboard/projects/{projectId}/wallet/payout";
    const { payout } = await once(`payout ${projectId}`, (idempotencyKey) =>
      unwrap(api.POST(path, { params, body: { ...body, idempotencyKey } })),
    );
    void client.invalidateQueries({ queryKey: ["project", projectId] });
    await navigate({ to: `/${projectId}/payouts/${payout.payoutId}` });
  }

  return (
    <>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked(true);
        }}
      >
        {to.fields}
        <BalanceAmount
          label={t("payments.amount")}
          balance={balance}
          value={amount}
          refused={refused.of("amount")}
          onText={(text) => {
            refused.forget();
            setAmount(text);
          }}
        />
        <div className="row">
          <Button type="submit" disabled={toUnits(amount.trim(), balance.decimals) === null || to.address === ""}>
            {t("payouts.check")}
          </Button>
        </div>
      </form>
      {isAsked && (
        <Confirm
          title={t("payouts.confirm")}
          act={t("payouts.pay")}
          isDangerous
          onConfirm={() => refused.noting(pay)}
          onClose={() => {
            setAsked(false);
          }}
        >
          <p>
            <Amount value={amount.trim()} token={balance.token} /> · <ChainName of={balance.chain} /> <InMode />
          </p>
          {to.shown}
          <p>{t("payouts.words")}</p>
        </Confirm>
      )}
    </>
  );
}
