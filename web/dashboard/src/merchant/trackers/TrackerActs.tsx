import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { gatewayNow } from "../../api/clock";
import { Confirm } from "../../ui/Confirm";
import { useOpened } from "../../ui/useOpened";
import { api, unwrap } from "../api";
import { useProjectId } from "../project";

import type { Tracker } from "./queries";

const HOUR_MS = 3_600_000;

/** What can be done with a tracker: switch it, have what was dropped sent again, end it. */
export function TrackerActs({ tracker }: { readonly tracker: Tracker }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { open, close, opener } = useOpened<"activate" | "deactivate" | "redeliver" | "end">();
  const [queued, setQueued] = useState<number | null>(null);
  const base = "/api/dashboard/projects/{projectId}/trackers/{webhookId}";
  const params = { path: { projectId, webhookId: tracker.webhookId } };
  const to = tracker.isActive ? "deactivate" : "activate";
  const forget = () => client.invalidateQueries({ queryKey: ["project", projectId] });
  // Where it is switched meanwhile, the next click would do the opposite of what was read.
  if ((open === "activate" || open === "deactivate") && open !== to) close();

  async function redeliver(): Promise<void> {
    const body = { since: new Date(gatewayNow() - 24 * HOUR_MS).toISOString() };
    setQueued((await unwrap(api.POST(`${base}/redeliver`, { params, body }))).queued);
    await forget();
  }

  async function end(): Promise<void> {
    await unwrap(api.DELETE(base, { params }));
    await navigate({ to: `/${projectId}/trackers` });
    void client.invalidateQueries({ queryKey: ["project", projectId, "trackers"] });
  }

  return (
    <>
      {queued !== null && <span role="status">{t("tracker.queued", { count: queued })}</span>}
      {/* Also where it watches nothing any more: what was dropped before is still to be had. */}
      {opener("redeliver", t("tracker.redeliver"))}
      {opener(to, t(`tracker.${to}`))}
      {opener("end", t("tracker.end"))}
      {open === to && (
        <Confirm
          title={t(`tracker.${to}Title`)}
          act={t(`tracker.${to}`)}
          onConfirm={async () => {
            await unwrap(api.POST(`${base}/${to}`, { params }));
            await forget();
          }}
          onClose={close}
        >
          <p>{t(`tracker.${to}Words`)}</p>
        </Confirm>
      )}
      {open === "redeliver" && (
        <Confirm title={t("tracker.redeliverTitle")} act={t("tracker.redeliver")} onConfirm={redeliver} onClose={close}>
          <p>{t("tracker.redeliverWords")}</p>
        </Confirm>
      )}
      {open === "end" && (
        <Confirm
          title={t("tracker.endTitle", { name: tracker.name })}
          act={t("tracker.end")}
          typed={tracker.name}
          isDangerous
          onConfirm={end}
          onClose={close}
        >
          <p>{t("tracker.endWords")}</p>
        </Confirm>
      )}
    </>
  );
}
