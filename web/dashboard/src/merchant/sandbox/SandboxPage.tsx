import { Button, NumberInput, Select } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Text } from "../../ui/Text";
import { useAct, type Act } from "../../ui/useAct";
import { Permitted } from "../Permitted";
import { useProject, useProjectId } from "../project";
import { chainsQuery } from "../queries";

const BLOCKS_MAX = 1000;

/** The sandbox's chains: pays, mines, reorganizes, and lets time pass. */
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
        <Simulated />
      )}
    </Page>
  );
}

function Simulated() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const chains = useQuery(chainsQuery);
  const [chain, setChain] = useState<string | null>(null);
  return (
    <Permitted to="payments">
      <Deposit projectId={projectId} />
      <Section title={t("sandbox.chain")}>
        <QueryView query={chains}>
          {(offered) => {
            if (offered.length === 0) return <Empty title={t("sandbox.noChains")} />;
            const at = chain ?? offered[0]?.chain ?? "";
            return (
              <div className="stack">
                <Select
                  label={t("payments.chain")}
                  data={offered.map((one) => ({ value: one.chain, label: one.name }))}
                  value={at}
                  onChange={setChain}
                />
                <Mine projectId={projectId} chain={at} />
                <Reorg projectId={projectId} chain={at} />
                <Advance projectId={projectId} chain={at} />
              </div>
            );
          }}
        </QueryView>
      </Section>
    </Permitted>
  );
}

interface Where {
  readonly projectId: string;
  readonly chain: string;
}

function useSandbox(projectId: string, act: () => Promise<unknown>): Act {
  const client = useQueryClient();
  return useAct(async () => {
    await act();
    await client.invalidateQueries({ queryKey: ["project", projectId] });
  });
}

function Deposit({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const [paymentId, setPaymentId] = useState("");
  const [amount, setAmount] = useState("");
  const [confirmations, setConfirmations] = useState<number>(0);
  const pay = useSandbox(projectId, () => {
    const body = {
      paymentId: paymentId.trim(),
      ...(amount.trim() === "" ? {} : { amount: amount.trim() }),
      confirmations,
    };
    return unwrap(
      api.POST("/api/dashboard/projects/{projectId}/sandbox/deposit", { params: { path: { projectId } }, body }),
    );
  });
  return (
    <Section title={t("sandbox.pay")}>
      <form className="stack" onSubmit={pay.submit}>
        <Text
          label={t("sandbox.payment")}
          placeholder="pay_…"
          required
          value={paymentId}
          error={pay.error?.of("paymentId")}
          onText={setPaymentId}
        />
        <Text
          label={t("payments.amount")}
          description={t("sandbox.amountWords")}
          inputMode="decimal"
          value={amount}
          error={pay.error?.of("amount")}
          onText={setAmount}
        />
        <NumberInput
          label={t("sandbox.confirmations")}
          min={0}
          max={BLOCKS_MAX}
          value={confirmations}
          onChange={(value) => {
            setConfirmations(Number(value));
          }}
        />
        {pay.error !== null && <ErrorNote error={pay.error} />}
        <div className="row">
          <Button type="submit" loading={pay.isRunning}>
            {t("sandbox.payAct")}
          </Button>
        </div>
      </form>
    </Section>
  );
}

interface StepProps {
  readonly act: Act;
  readonly label: string;
  readonly button: string;
  readonly value: number;
  readonly max: number;
  readonly onValue: (value: number) => void;
}

function Step({ act, label, button, value, max, onValue }: StepProps) {
  return (
    <form className="stack" onSubmit={act.submit}>
      <div className="row">
        <NumberInput
          label={label}
          min={1}
          max={max}
          value={value}
          onChange={(typed) => {
            onValue(Number(typed));
          }}
        />
        <Button type="submit" variant="default" loading={act.isRunning} className="besideInput">
          {button}
        </Button>
      </div>
      {act.error !== null && <ErrorNote error={act.error} />}
    </form>
  );
}

function Mine({ projectId, chain }: Where) {
  const { t } = useTranslation();
  const [blocks, setBlocks] = useState(1);
  const params = { path: { projectId } };
  const mine = useSandbox(projectId, () =>
    unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/mine", { params, body: { chain, blocks } })),
  );
  return (
    <Step
      act={mine}
      label={t("sandbox.blocks")}
      button={t("sandbox.mine")}
      value={blocks}
      max={BLOCKS_MAX}
      onValue={setBlocks}
    />
  );
}

function Reorg({ projectId, chain }: Where) {
  const { t } = useTranslation();
  const [depth, setDepth] = useState(1);
  const params = { path: { projectId } };
  const reorg = useSandbox(projectId, () =>
    unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/reorg", { params, body: { chain, depth } })),
  );
  return (
    <Step
      act={reorg}
      label={t("sandbox.depth")}
      button={t("sandbox.reorg")}
      value={depth}
      max={BLOCKS_MAX}
      onValue={setDepth}
    />
  );
}

const MINUTES_MAX = 40_000;

function Advance({ projectId, chain }: Where) {
  const { t } = useTranslation();
  const [minutes, setMinutes] = useState(60);
  const params = { path: { projectId } };
  const advance = useSandbox(projectId, () => {
    const body = { chain, seconds: minutes * 60 };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/advance-time", { params, body }));
  });
  return (
    <Step
      act={advance}
      label={t("sandbox.minutes")}
      button={t("sandbox.advance")}
      value={minutes}
      max={MINUTES_MAX}
      onValue={setMinutes}
    />
  );
}
