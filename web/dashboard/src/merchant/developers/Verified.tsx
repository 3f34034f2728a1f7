import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ErrorNote } from "../../ui/Feedback";
import { showMilliseconds } from "../../ui/format";
import { Facts, Section } from "../../ui/Page";
import { Chip, type Tone } from "../../ui/Status";
import { useAct } from "../../ui/useAct";
import { When } from "../../ui/When";
import { api, unwrap } from "../api";
import { usePermitted, useProjectId } from "../project";
import { projectsQuery, type Schemas } from "../queries";

import { VerifyCode } from "./VerifyCode";

export type SignatureCheck = Schemas["SignatureCheckView"];
type Checked = Schemas["SignatureChecked"];

const TONES = {
  verified: "good",
  unchecked: "bad",
  refused: "care",
  unreachable: "care",
  unclear: "care",
} as const satisfies Record<SignatureCheck["result"], Tone>;

/** Whether a server checks signatures, as it was last seen. */
export function CheckChip({ check }: { readonly check: SignatureCheck | null }) {
  const { t } = useTranslation();
  if (check === null) return <Chip tone="calm">{t("verify.never")}</Chip>;
  return <Chip tone={TONES[check.result]}>{t(`verify.results.${check.result}`)}</Chip>;
}

/** Have both tests sent, to the project's own URL or to an endpoint. What the pages know of it is asked for anew. */
export function useCheck(endpointId: string | null) {
  const projectId = useProjectId();
  const client = useQueryClient();
  const [checked, setChecked] = useState<Checked | null>(null);
  const act = useAct(async () => {
    setChecked(null);
    const base = "/api/merchant/projects/{projectId}";
    setChecked(
      await unwrap(
        endpointId === null
          ? api.POST(`${base}/check-webhook`, { params: { path: { projectId } } })
          : api.POST(`${base}/webhook-endpoints/{endpointId}/check`, { params: { path: { projectId, endpointId } } }),
      ),
    );
    await Promise.all([
      client.invalidateQueries(projectsQuery),
      client.invalidateQueries({ queryKey: ["project", projectId] }),
    ]);
  });
  return { act, checked };
}

interface VerifiedProps {
  /** Null is the project's own URL. */
  readonly endpointId: string | null;
  readonly check: SignatureCheck | null;
}

/** Whether a server checks signatures: what is known, finding it out, and the code that does it. */
export function Verified({ endpointId, check }: VerifiedProps) {
  const { t } = useTranslation();
  const mayCheck = usePermitted("webhooks");
  const { act, checked } = useCheck(endpointId);
  return (
    <Section title={t("verify.title")}>
      <div className="stack">
        <p className="row">
          <CheckChip check={check} />
          {check !== null && <When at={check.checkedAt} />}
          <span>{t(check === null ? "verify.neverWords" : `verify.words.${check.result}`)}</span>
        </p>
        {mayCheck && (
          <>
            <p className="muted">{t("verify.lead")}</p>
            <div className="row">
              <Button variant="default" loading={act.isRunning} onClick={() => void act.run()}>
                {t("verify.act")}
              </Button>
            </div>
          </>
        )}
        {act.error !== null && <ErrorNote error={act.error} />}
        {checked !== null && <CheckOutcome checked={checked} />}
        <details>
          <summary>{t("verify.code")}</summary>
          <VerifyCode />
        </details>
      </div>
    </Section>
  );
}

/** What both tests were answered. */
export function CheckOutcome({ checked }: { readonly checked: Checked }) {
  const { t } = useTranslation();
  return (
    <div role="status" className="stack">
      {!checked.kept && <p>{t("verify.changed")}</p>}
      <Facts
        facts={[
          [t("verify.genuine"), <Answered key="genuine" delivery={checked.genuine} />],
          [t("verify.forged"), <Answered key="forged" delivery={checked.forged} />],
        ]}
      />
    </div>
  );
}

function Answered({ delivery }: { readonly delivery: Checked["genuine"] }) {
  const { i18n } = useTranslation();
  const projectId = useProjectId();
  return (
    <Link to={`/${projectId}/webhooks/${delivery.deliveryId}`}>
      <span className="number">
        {delivery.statusCode ?? delivery.error} · {showMilliseconds(delivery.durationMs, i18n.language)}
      </span>
    </Link>
  );
}
