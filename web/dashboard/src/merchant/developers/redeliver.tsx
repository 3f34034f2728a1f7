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

interface RedeliveredProps {
  readonly act: Act;
  /** What it was sent again by, as it is now: once all of it has ended, that says what became of it. */
  readonly of: readonly { readonly status: string }[];
}

/** Whether it is on its way, or was refused. */
export function Redelivered({ act, of }: RedeliveredProps) {
  const { t } = useTranslation();
  return (
    <>
      {act.error !== null && <ErrorNote error={act.error} />}
      <div role="status">{act.isDone && of.some((one) => isOpen(one.status)) && t("events.again")}</div>
    </>
  );
}
