import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Confirm } from "../../ui/Confirm";
import { ErrorNote } from "../../ui/Feedback";
import { Meter } from "../../ui/Meter";
import { Section } from "../../ui/Page";
import { Status } from "../../ui/Status";
import { useAct } from "../../ui/useAct";
import { api, unwrap } from "../api";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import type { Tracker } from "./queries";

type History = Schemas["HistoryView"];

interface PastProps {
  readonly tracker: Tracker;
  readonly history: History;
  readonly mayManage: boolean;
}

/** How far the past of a tracker's addresses is read, and what is in the way. */
export function Past({ tracker, history, mayManage }: PastProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const isReading = history.state === "reading";
  const [isStopping, setStopping] = useState(false);
  const params = { path: { projectId, webhookId: tracker.webhookId } };
  const base = "/api/dashboard/projects/{projectId}/trackers/{webhookId}/history";
  const forget = () => client.invalidateQueries({ queryKey: ["project", projectId] });
  const steer = useAct(async () => {
    await unwrap(api.POST(`${base}/restart`, { params }));
    await forget();
  });
  return (
    <Section
      title={t("tracker.past")}
      actions={
        mayManage && (
          <Button
            variant="default"
            loading={steer.isRunning}
            onClick={() => {
              if (isReading) setStopping(true);
              else void steer.run();
            }}
          >
            {t(isReading ? "tracker.stopPast" : "tracker.readAgain")}
          </Button>
        )
      }
    >
      <div className="stack">
        <span className="row">
          <Status value={history.state} />
          {isReading && !tracker.isActive && <span>{t("tracker.pastWaits")}</span>}
        </span>
        <Progress history={history} />
        {history.error !== null && (
          <p>
            {t("payout.error")}: {history.error}
          </p>
        )}
        {history.untoldMovements > 0 && <p>{t("tracker.untold", { count: history.untoldMovements })}</p>}
        {steer.error !== null && <ErrorNote error={steer.error} />}
      </div>
      {isStopping && (
        <Confirm
          title={t("tracker.stopPastTitle")}
          act={t("tracker.stopPast")}
          onConfirm={async () => {
            await unwrap(api.POST(`${base}/cancel`, { params }));
            await forget();
          }}
          onClose={() => {
            setStopping(false);
          }}
        >
          <p>{t("tracker.stopPastWords")}</p>
        </Confirm>
      )}
    </Section>
  );
}

/** Return how many blocks are read, and of how many; null before it is known which. */
export function progressOf({
  fromBlock,
  toBlock,
  readBlock,
}: History): { readonly read: number; readonly all: number } | null {
  if (fromBlock === null || toBlock === null) return null;
  const all = toBlock - fromBlock + 1;
  const read = readBlock === null ? 0 : Math.max(0, Math.min(readBlock - fromBlock + 1, all));
  return { read, all };
}

function Progress({ history }: { readonly history: History }) {
  const { t } = useTranslation();
  const progress = progressOf(history);
  if (progress === null) return history.state === "reading" ? <p className="muted">{t("tracker.begins")}</p> : null;
  return <Meter label={t("tracker.blocks")} value={progress.read} max={progress.all} />;
}
