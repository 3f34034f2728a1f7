import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { api, unwrap } from "../api";
import { Amount } from "../../ui/Amount";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { toUnits } from "../../ui/units";
import { useRefused } from "../../ui/useRefused";
import { CodeInput } from "../CodeInput";
import { coinKey } from "../coins/queries";
import { InMode } from "../InMode";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { once } from "../../api/once";
import { Permitted } from "../Permitted";
import { useRecipient } from "../payouts/useRecipient";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";
import { BalanceAmount } from "../wallet/BalanceAmount";
import { BalanceSelect } from "../wallet/BalanceSelect";
import { useNamed, walletQuery } from "../wallet/queries";

type Balance = Schemas["BalanceView"];

/** Taking one's own money out, in person: each time with a code of the authenticator. */
export function NewWithdrawal() {
  const { t } = useTranslation();
  const wallet = useQuery(walletQuery(useProjectId()));
  return (
    <Page title={t("withdrawal.new")} lead={t("withdrawal.newLead")}>
      <Permitted to="withdrawals">
        <NeedsSecondFactor always />
        <Section>
          <QueryView query={wallet}>
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
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [chosen, setChosen] = useState<string | null>(null);
  const [amount, setAmount] = useState("");
  const [code, setCode] = useState("");
  const [isAsked, setAsked] = useState(false);
  const refused = useRefused(chosen);
  const balance = balances.find((one) => coinKey(one) === chosen);
  const wanted = amount.trim();
  const words = { label: t("payouts.to"), description: t("withdrawal.toWords") };
  const to = useRecipient(balance?.chain, refused, words);
  const isAmount = balance !== undefined && toUnits(wanted, balance.decimals) !== null;

  async function withdraw({ chain, token }: Balance): Promise<void> {
    const body = { projectId, chain, token, amount: wanted, totpCode: code.trim(), ...to.body };
    const { withdrawal } = await once(`withdrawal ${projectId}`, (idempotencyKey) =>
      unwrap(api.POST("/api/dashboard/withdrawals", { body: { ...body, idempotencyKey } })),
    );
    void client.invalidateQueries({ queryKey: ["project", projectId] });
    await navigate({ to: `/${projectId}/withdrawals/${withdrawal.withdrawalId}` });
  }

  return (
    <>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setCode("");
          setAsked(true);
        }}
      >
        <BalanceSelect balances={balances} value={chosen} onChoice={setChosen} />
        {balance !== undefined && (
          <p>
            {t("wallet.available")}: <Amount value={balance.available} token={balance.token} />
          </p>
        )}
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
          <Button type="submit" disabled={!isAmount || to.address === ""}>
            {t("payouts.check")}
          </Button>
        </div>
      </form>
      {isAsked && balance !== undefined && (
        <Confirm
          title={t("withdrawal.confirm")}
          act={t("withdrawal.act")}
          isDangerous
          isBlocked={code.trim() === ""}
          onConfirm={() => refused.noting(() => withdraw(balance))}
          onClose={() => {
            setAsked(false);
          }}
        >
          <p>
            <Amount value={wanted} token={balance.token} /> · <ChainName of={balance.chain} /> <InMode />
          </p>
          {to.shown}
          <p>{t("withdrawal.words")}</p>
          <CodeInput value={code} onText={setCode} />
        </Confirm>
      )}
    </>
  );
}
