import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { Confirm } from "../../ui/Confirm";
import { RowChoice } from "../../ui/RowChoice";
import { useRefused } from "../../ui/useRefused";
import { api, unwrap } from "../api";
import { InMode } from "../InMode";
import { once } from "../../api/once";
import { usePermitted } from "../project";
import { useRefundForm } from "../refunds/useRefundForm";

import type { Resolution } from "./queries";

type Choice = "accept" | "release" | "refund";

interface ActsProps {
  readonly projectId: string;
  readonly resolution: Resolution;
}

/** What may be done with money that is held: count it to its order, keep it, send it back. */
export function ResolutionActs({ projectId, resolution }: ActsProps) {
  const { t } = useTranslation();
  const [choice, setChoice] = useState<Choice | null>(null);
  const mayResolve = usePermitted("payments");
  const mayRefund = usePermitted("refunds");

  const offered: readonly Choice[] = [
    ...(mayResolve && resolution.canAccept ? (["accept"] as const) : []),
    ...(mayResolve ? (["release"] as const) : []),
    ...(mayRefund && resolution.refundableAmount !== "0" ? (["refund"] as const) : []),
  ];
  return (
    <span className="row end">
      <RowChoice
        of={resolution.depositId}
        acts={offered.map((one) => ({ id: one, act: t(`resolutions.${one}.act`) }))}
        onChosen={(id) => {
          setChoice(offered.find((one) => one === id) ?? null);
        }}
      />
      {choice !== null && (
        <Act
          projectId={projectId}
          resolution={resolution}
          choice={choice}
          onClose={() => {
            setChoice(null);
          }}
        />
      )}
    </span>
  );
}

interface ActProps extends ActsProps {
  readonly choice: Choice;
  readonly onClose: () => void;
}

/** Mounted while it is open: what was sent back before is in no field of the next one. */
function Act({ projectId, resolution, choice, onClose }: ActProps) {
  const { t } = useTranslation();
  const { heldAmount, refundableAmount } = resolution;
  const client = useQueryClient();
  const refused = useRefused(null);
  const form = useRefundForm({ chain: resolution.chain, token: resolution.token, all: refundableAmount }, refused);

  async function resolve(): Promise<void> {
    const params = { path: { projectId, depositId: resolution.depositId } };
    const base = "/api/dashboard/projects/{projectId}/resolutions/{depositId}";
    if (choice === "accept") await unwrap(api.POST(`${base}/accept`, { params }));
    else if (choice === "release") await unwrap(api.POST(`${base}/release`, { params }));
    else {
      await once(`resolution ${projectId} ${resolution.depositId}`, (idempotencyKey) =>
        unwrap(api.POST(`${base}/refund`, { params, body: { ...form.body, idempotencyKey } })),
      );
    }
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  }

  return (
    <Confirm
      title={t(`resolutions.${choice}.title`)}
      act={t(`resolutions.${choice}.act`)}
      isDangerous={choice === "refund"}
      onConfirm={() => refused.noting(resolve)}
      onClose={onClose}
    >
      <p>
        <Amount value={choice === "refund" ? refundableAmount : heldAmount} token={resolution.token} /> ·{" "}
        <ChainName of={resolution.chain} /> <InMode />
      </p>
      <p>{t(`resolutions.${choice}.words`)}</p>
      {choice === "refund" ? form.fields : <p>{t("resolutions.final")}</p>}
    </Confirm>
  );
}
