import { Button, NumberInput, Select } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { api, unwrap } from "../api";
import { useProjectId } from "../project";

import styles from "./Panel.module.css";
import { useSandbox } from "./useSandbox";

export const BLOCKS_MAX = 1000;
const MINUTES_MAX = 40_000;

interface ChainActsProps {
  readonly chain: string;
  /** What is offered at first: blocks to mine, blocks to replace, minutes to let pass. */
  readonly blocks?: number;
  readonly depth?: number;
  readonly minutes?: number;
}

/** What can be made to happen on one simulated chain: it mines, reorganizes, and time passes. */
export function ChainActs({ chain, blocks = 1, depth = 1, minutes = 60 }: ChainActsProps) {
  return (
    <div className={styles.steps}>
      <Mine chain={chain} offered={blocks} />
      <Reorg chain={chain} offered={depth} />
      <Advance chain={chain} offered={minutes} />
    </div>
  );
}

interface StepProps {
  readonly chain: string;
  /** What is done unless something else is typed. */
  readonly offered: number;
}

function Mine({ chain, offered }: StepProps) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const [typed, setTyped] = useState<number | null>(null);
  const blocks = typed ?? offered;
  const mine = useSandbox(() =>
    unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/mine", { params, body: { chain, blocks } })),
  );
  return (
    <form className="stack" onSubmit={mine.submit}>
      <div className="row">
        <Count label={t("sandbox.blocks")} max={BLOCKS_MAX} value={blocks} onValue={setTyped} />
        <Button type="submit" variant="default" loading={mine.isRunning} className="besideInput">
          {t("sandbox.mine")}
        </Button>
      </div>
      {mine.outcome}
    </form>
  );
}

/** What becomes of deposits in the blocks that are replaced. */
const FATES = ["drop", "return"] as const;
type Fate = (typeof FATES)[number];

function Reorg({ chain, offered }: StepProps) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const [typed, setTyped] = useState<number | null>(null);
  const [transactions, setFate] = useState<Fate>("drop");
  const depth = typed ?? offered;
  const reorg = useSandbox(() => {
    const body = { chain, depth, transactions };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/reorg", { params, body }));
  });
  return (
    <form className="stack" onSubmit={reorg.submit}>
      <div className="row">
        <Count label={t("sandbox.depth")} max={BLOCKS_MAX} value={depth} onValue={setTyped} />
        <Select
          label={t("sandbox.fate")}
          data={FATES.map((one) => ({ value: one, label: t(`sandbox.fates.${one}`) }))}
          allowDeselect={false}
          value={transactions}
          onChange={(chosen) => {
            setFate(FATES.find((one) => one === chosen) ?? "drop");
          }}
        />
        <Button type="submit" variant="default" loading={reorg.isRunning} className="besideInput">
          {t("sandbox.reorg")}
        </Button>
      </div>
      {reorg.outcome}
    </form>
  );
}

function Advance({ chain, offered }: StepProps) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const [typed, setTyped] = useState<number | null>(null);
  const minutes = typed ?? offered;
  const advance = useSandbox(() => {
    const body = { chain, seconds: minutes * 60 };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/advance-time", { params, body }));
  });
  return (
    <form className="stack" onSubmit={advance.submit}>
      <div className="row">
        <Count label={t("sandbox.minutes")} max={MINUTES_MAX} value={minutes} onValue={setTyped} />
        <Button type="submit" variant="default" loading={advance.isRunning} className="besideInput">
          {t("sandbox.advance")}
        </Button>
      </div>
      {advance.outcome}
    </form>
  );
}

interface CountProps {
  readonly label: string;
  readonly max: number;
  readonly value: number;
  readonly onValue: (value: number) => void;
}

function Count({ label, max, value, onValue }: CountProps) {
  return (
    <NumberInput
      label={label}
      min={1}
      max={max}
      allowDecimal={false}
      value={value}
      onChange={(typed) => {
        onValue(Number(typed));
      }}
    />
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
