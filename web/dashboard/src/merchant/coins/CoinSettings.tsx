import { Select, Switch } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { AmountText } from "../../ui/AmountText";
import { useChainName } from "../../ui/ChainName";
import { addressParts, showAmount } from "../../ui/format";
import { Confirm } from "../../ui/Confirm";
import { ErrorNote } from "../../ui/Feedback";
import { SearchSelect } from "../../ui/SearchSelect";
import { api, unwrap } from "../api";
import { useTargets } from "../exchanges/targets";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { useProject, useProjectId } from "../project";
import type { Schemas } from "../queries";

import { approvedQuery, coinKey, coinsQuery, type Approved, type Coin } from "./queries";

interface CoinSettingsProps {
  readonly coin: Coin;
  readonly onClose: () => void;
}

/** What is set of a coin, as the form has it: empty texts are nothing. */
interface Draft {
  readonly isConverting: boolean;
  readonly target: string | null;
  readonly isPayingOut: boolean;
  readonly threshold: string;
  readonly address: string | null;
  readonly minDeposit: string;
}

function draftOf(coin: Coin): Draft {
  const { autoConvertDestToken: token, autoConvertDestChain: chain } = coin;
  return {
    isConverting: coin.autoConvertEnabled,
    target: token === null ? null : coinKey({ chain: chain ?? coin.chain, token }),
    isPayingOut: coin.autopayoutPolicy === "limit",
    threshold: coin.autopayoutThreshold ?? "",
    address: coin.autopayoutAddress,
    minDeposit: coin.minDeposit ?? "",
  };
}

const orNull = (text: string) => (text.trim() === "" ? null : text.trim());

/** Return what was changed, and nothing else: what somebody else changes meanwhile stays. */
export function patchOf(coin: Coin, draft: Draft, coins: readonly Coin[]): Schemas["CoinPatch"] {
  const was = draftOf(coin);
  const target = coins.find((one) => coinKey(one) === draft.target);
  return {
    ...(draft.isConverting === was.isConverting ? {} : { autoConvertEnabled: draft.isConverting }),
    ...(draft.target === was.target
      ? {}
      : { autoConvertDestChain: target?.chain ?? null, autoConvertDestToken: target?.token ?? null }),
    ...(draft.isPayingOut === was.isPayingOut ? {} : { autopayoutPolicy: draft.isPayingOut ? "limit" : "off" }),
    ...(draft.threshold === was.threshold ? {} : { autopayoutThreshold: orNull(draft.threshold) }),
    ...(draft.address === was.address ? {} : { autopayoutAddress: draft.address }),
    ...(draft.minDeposit === was.minDeposit ? {} : { minDeposit: orNull(draft.minDeposit) }),
  };
}

/** Changes what happens to a coin by itself. */
export function CoinSettings({ coin, onClose }: CoinSettingsProps) {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  const projectId = useProjectId();
  const project = useProject();
  const client = useQueryClient();
  const { data: coins = [] } = useQuery(coinsQuery(projectId));
  const approved = useQuery({
    ...approvedQuery({ projectId, mode: project?.mode ?? "live" }),
    enabled: project !== null,
  });
  const [opened] = useState(coin);
  const [draft, setDraft] = useState(() => draftOf(coin));
  const set = (changed: Partial<Draft>) => {
    setDraft((was) => ({ ...was, ...changed }));
  };
  const patch = patchOf(opened, draft, coins);
  const targets = useTargets(coin);
  const was = draftOf(opened).target;
  const offered = targets.groups.flatMap(({ items }) => items.map((one) => one.value));

  async function save(): Promise<void> {
    const params = { path: { projectId, chain: coin.chain, symbol: coin.token } };
    const path = "/api/dashboard/projects/{projectId}/wallet/coins/{chain}/{symbol}/settings";
    await unwrap(api.PATCH(path, { params, body: patch }));
    void client.invalidateQueries(coinsQuery(projectId));
  }

  return (
    <Confirm
      title={t("coins.settingsTitle", { coin: `${coin.token} · ${chainName(coin.chain)}` })}
      act={t("settings.save")}
      isBlocked={Object.keys(patch).length === 0 || (draft.isConverting && draft.target === null)}
      onConfirm={save}
      onClose={onClose}
    >
      <NeedsSecondFactor />
      <Switch
        label={t("coins.convertSwitch")}
        description={
          targets.why === null
            ? t("coins.convertWords", { usd: showAmount(coin.autoConvertMinimumUsd, i18n.language).text })
            : t(targets.why)
        }
        // What was switched on before can be switched off all the same.
        disabled={targets.why !== null && !draft.isConverting}
        checked={draft.isConverting}
        onChange={(event) => {
          set({ isConverting: event.currentTarget.checked });
        }}
      />
      {draft.isConverting && (
        <SearchSelect
          label={t("coins.convertInto")}
          required
          value={draft.target}
          error={targets.isKnown && draft.target !== null && !offered.includes(draft.target) && t("coins.notConverted")}
          data={[
            ...(was !== null && offered.includes(was) ? [] : targetAsSet(coins, was, chainName)),
            ...targets.groups,
          ]}
          onChoice={(target) => {
            set({ target });
          }}
        />
      )}
      {targets.error !== null && <ErrorNote error={targets.error} />}
      <Switch
        label={t("coins.payoutSwitch")}
        description={t("coins.payoutWords", { usd: showAmount(coin.autopayoutMinimumUsd, i18n.language).text })}
        checked={draft.isPayingOut}
        onChange={(event) => {
          set({ isPayingOut: event.currentTarget.checked });
        }}
      />
      {draft.isPayingOut && (
        <>
          <AmountText
            label={t("coins.threshold")}
            description={t("coins.thresholdWords")}
            value={draft.threshold}
            onText={(threshold) => {
              set({ threshold });
            }}
          />
          <Select
            label={t("coins.address")}
            description={t("coins.addressWords")}
            clearable
            value={draft.address}
            data={addressOptions(approved.data ?? [], coin, draft.address)}
            onChange={(address) => {
              set({ address });
            }}
          />
        </>
      )}
      <AmountText
        label={t("coins.minDeposit")}
        description={t("coins.minDepositWords")}
        value={draft.minDeposit}
        onText={(minDeposit) => {
          set({ minDeposit });
        }}
      />
    </Confirm>
  );
}

/** What is set as the target and is not offered: nobody exchanges it any more, it was disabled, or it is not known yet. */
function targetAsSet(coins: readonly Coin[], target: string | null, chainName: (chain: string) => string) {
  return coins
    .filter((one) => coinKey(one) === target)
    .map((one) => ({ value: coinKey(one), label: `${one.token} · ${chainName(one.chain)}` }));
}

/** The approved addresses of the coin's chain, and the one that is set, also where nobody may read the others. */
function addressOptions(approved: readonly Approved[], coin: Coin, chosen: string | null) {
  const there = approved.filter((one) => one.chain === coin.chain);
  const options = there.map((one) => ({ value: one.address, label: `${one.label} · ${shorten(one.address)}` }));
  if (chosen === null || there.some((one) => one.address === chosen)) return options;
  return [...options, { value: chosen, label: shorten(chosen) }];
}

function shorten(address: string): string {
  const { head, middle, tail } = addressParts(address);
  return middle === "" ? address : `${head}…${tail}`;
}
