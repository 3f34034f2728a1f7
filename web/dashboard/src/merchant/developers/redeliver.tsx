/** Sending again what was told before: done when the gateway has taken it over, which is before it arrives. */
import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ErrorNote } from "../../ui/Feedback";
import { useAct, type Act } from "../../ui/useAct";
import { useProjectId } from "../project";

const OPEN: ReadonlySet<string> = new Set(["pending", "paused"]);

/** Say whether a delivery is under way, or is as soon as its endpoint is not paused: it is not begun twice. */
export function isOpen(status: string): boolean {
  return OPEN.has(status);
}

/** Say whether an event is on its way to everybody it was for, so that there is nothing to send again. */
export function isOpenEverywhere(deliveries: readonly { readonly status: string }[]): boolean {
  return deliveries.length > 0 && deliveries.every((one) => isOpen(one.status));
}

export function useRedeliver(send: () => Promise<unknown>): Act {
  const client = useQueryClient();
  const projectId = useProjectId();
  return useAct(async () => {
    await send();
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  });
}

/** What became of it. */
export function Redelivered({ act }: { readonly act: Act }) {
  const { t } = useTranslation();
  return (
    <>
      {act.error !== null && <ErrorNote error={act.error} />}
      <div role="status">{act.isDone && t("events.again")}</div>
    </>
  );
}
