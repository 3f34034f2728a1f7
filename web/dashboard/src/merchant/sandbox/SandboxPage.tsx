import { Button, NumberInput, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { AmountText } from "../../ui/AmountText";
import { useChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Text } from "../../ui/Text";
import { api, unwrap } from "../api";
import { coinsQuery, type Coin } from "../coins/queries";
import { Permitted } from "../Permitted";
import { useProject, useProjectId } from "../project";

import { AnyChain, BLOCKS_MAX } from "./ChainActs";
import { useSandbox } from "./useSandbox";

/** The sandbox's chains: pays, mines, reorganizes, and lets time pass. Pages of what there is have the same for it. */
export function SandboxPage() {
  const { t } = useTranslation();
  const isLive = useProject()?.mode === "live";
  return (
    <Page title={t("sandbox.title")} lead={t("sandbox.lead")}>
      {isLive ? (
        // The navigation does not lead here, but an address that was kept does, with the project of now.
        <Section>
          <Empty title={t("sandbox.isLive")} />
        </Section>
      ) : (
        <Permitted to="payments">
          <Simulated />
        </Permitted>
      )}
    </Page>
  );
}

function Simulated() {
  const { t } = useTranslation();
  const query = useQuery(coinsQuery(useProjectId()));
  return (
    <QueryView query={query}>
      {(coins) => (
        <>
          <Deposit coins={coins} />
          <Section title={t("sandbox.chain")}>
            {coins.length === 0 ? (
              <Empty title={t("sandbox.noChains")} />
            ) : (
              <AnyChain chains={[...new Set(coins.map((one) => one.chain))]} />
            )}
          </Section>
        </>
      )}
    </QueryView>
  );
}

/** Return what an id or an address names, as the API takes it. */
function named(to: string) {
  if (to.startsWith("pay_")) return { paymentId: to };
  if (to.startsWith("acc_")) return { accountId: to };
  return { address: to };
}

function Deposit({ coins }: { readonly coins: readonly Coin[] }) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const chainName = useChainName();
  const [to, setTo] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const [amount, setAmount] = useState("");
  const [confirmations, setConfirmations] = useState(0);
  const names = coins.map((one) => `${one.token} · ${chainName(one.chain)}`);
  const coin = chosen === null ? undefined : coins[names.indexOf(chosen)];
  const pay = useSandbox(() => {
    const body = {
      ...named(to.trim()),
      ...(coin === undefined ? {} : { chain: coin.chain, token: coin.token }),
      ...(amount.trim() === "" ? {} : { amount: amount.trim() }),
      confirmations,
    };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/deposit", { params, body }));
  });
  return (
    <Section title={t("sandbox.pay")}>
      <form className="stack" onSubmit={pay.submit}>
        <Text
          label={t("sandbox.to")}
          description={t("sandbox.toWords")}
          required
          value={to}
          error={pay.error?.of("paymentId") ?? pay.error?.of("address")}
          onText={setTo}
        />
        <Select
          label={t("payments.token")}
          placeholder={t("sandbox.own")}
          clearable
          searchable
          data={names}
          value={chosen}
          error={pay.error?.of("token") ?? pay.error?.of("chain")}
          onChange={setChosen}
        />
        <AmountText
          label={t("payments.amount")}
          description={t("sandbox.amountWords")}
          value={amount}
          error={pay.error?.of("amount")}
          onText={setAmount}
        />
        <NumberInput
          label={t("sandbox.confirmations")}
          min={0}
          max={BLOCKS_MAX}
          allowDecimal={false}
          value={confirmations}
          onChange={(value) => {
            setConfirmations(Number(value));
          }}
        />
        {pay.outcome}
        <div className="row">
          <Button type="submit" loading={pay.isRunning}>
            {t("sandbox.payAct")}
          </Button>
        </div>
      </form>
    </Section>
  );
}
