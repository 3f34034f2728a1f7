import { Button, NumberInput, Select } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { api, unwrap } from "../api";
import { useChains, useProjectId } from "../project";

import styles from "./Panel.module.css";
import { useSandbox, type Sent } from "./useSandbox";

export const BLOCKS_MAX = 1000;
const MINUTES_MAX = 40_000;

interface ChainActsProps {
  readonly chain: string;
  /** What is offered at first: blocks to mine (or else so many that what is sent has its confirmations), blocks to replace, minutes. */
  readonly blocks?: number;
  readonly depth?: number;
  readonly minutes?: number;
}

/** What can be made to happen on one simulated chain: it mines, reorganizes, and time passes. */
export function ChainActs({ chain, blocks, depth = 1, minutes = 60 }: ChainActsProps) {
  const { t } = useTranslation();
  const { data: chains = [] } = useChains();
  const confirmations = chains.find((one) => one.chain === chain)?.defaultConfirmations ?? 0;
  const params = { path: { projectId: useProjectId() } };
  return (
    <div className={styles.steps}>
      <Step
        label={t("sandbox.blocks")}
        max={BLOCKS_MAX}
        offered={blocks ?? confirmations + 1}
        act={t("sandbox.mine")}
        send={(count) => {
          const body = { chain, blocks: count };
          return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/mine", { params, body }));
        }}
      />
      <Reorg chain={chain} offered={depth} />
      <Step
        label={t("sandbox.minutes")}
        max={MINUTES_MAX}
        offered={minutes}
        act={t("sandbox.advance")}
        send={(count) => {
          const body = { chain, seconds: count * 60 };
          return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/advance-time", { params, body }));
        }}
      />
    </div>
  );
}

/** What becomes of deposits in the blocks that are replaced. */
const FATES = ["drop", "return"] as const;
type Fate = (typeof FATES)[number];

function Reorg({ chain, offered }: { readonly chain: string; readonly offered: number }) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const [transactions, setFate] = useState<Fate>("drop");
  return (
    <Step
      label={t("sandbox.depth")}
      max={BLOCKS_MAX}
      offered={offered}
      act={t("sandbox.reorg")}
      send={(depth) => {
        const body = { chain, depth, transactions };
        return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/reorg", { params, body }));
      }}
    >
      <Select
        label={t("sandbox.fate")}
        data={FATES.map((one) => ({ value: one, label: t(`sandbox.fates.${one}`) }))}
        allowDeselect={false}
        value={transactions}
        onChange={(chosen) => {
          setFate(FATES.find((one) => one === chosen) ?? "drop");
        }}
      />
    </Step>
  );
}

interface StepProps {
  readonly label: string;
  readonly max: number;
  /** How much is done unless something else is typed. */
  readonly offered: number;
  readonly act: string;
  readonly send: (count: number) => Sent;
  /** What else is chosen. */
  readonly children?: ReactNode;
}

/** Something that is done so many times, or for so long. */
function Step({ label, max, offered, act, send, children }: StepProps) {
  const [typed, setTyped] = useState<number | null>(null);
  const count = typed ?? offered;
  const step = useSandbox(() => send(count));
  return (
    <form className="stack" onSubmit={step.submit}>
      <div className="row">
        <NumberInput
          label={label}
          min={1}
          max={max}
          allowDecimal={false}
          value={count}
          onChange={(value) => {
            setTyped(Number(value));
          }}
        />
        {children}
        <Button type="submit" variant="default" loading={step.isRunning} className="besideInput">
          {act}
        </Button>
      </div>
      {step.outcome}
    </form>
  );
}

interface AnyChainProps {
  readonly chains: readonly string[];
}

/** The same on one of several chains. */
export function AnyChain({ chains }: AnyChainProps) {
  const { t } = useTranslation();
  const chainName = useChainName();
  const [chosen, setChosen] = useState<string | null>(null);
  const chain = chains.find((one) => one === chosen) ?? chains[0];
  if (chain === undefined) return null;
  return (
    <div className="stack">
      {chains.length > 1 && (
        <Select
          label={t("payments.chain")}
          allowDeselect={false}
          searchable
          data={chains.map((value) => ({ value, label: chainName(value) }))}
          value={chain}
          onChange={setChosen}
        />
      )}
      <ChainActs key={chain} chain={chain} />
    </div>
  );
}
