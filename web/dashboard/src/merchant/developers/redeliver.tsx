/** Sending again what was told before: done when the gateway has taken it over, which is before it arrives. */
import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ErrorNote } from "../../ui/Feedback";
import { useAct, type Act } from "../../ui/useAct";
import { useProjectId } from "../project";

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
