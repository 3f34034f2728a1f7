import { useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { ErrorNote } from "../../ui/Feedback";
import { numbers } from "../../ui/format";
import { useAct, type Act } from "../../ui/useAct";
import { useProjectId } from "../project";

interface Tip {
  readonly chain: string;
  readonly height: number;
}

interface SandboxAct extends Act {
  /** What became of it: the blocks at which the chains stand now, or what went wrong. */
  readonly outcome: ReactNode;
}

/** What is asked for, until its answer says where the chain stands, or several do. */
export type Sent = Promise<Tip | { readonly chains: readonly Tip[] }>;

/** Something that is made to happen on simulated chains. */
export function useSandbox(send: () => Sent): SandboxAct {
  const client = useQueryClient();
  const projectId = useProjectId();
  const [tips, setTips] = useState<readonly Tip[]>([]);
  const act = useAct(async () => {
    setTips([]);
    const answer = await send();
    setTips("chains" in answer ? answer.chains : [answer]);
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  });
  const outcome = act.error === null ? <Stands at={tips} /> : <ErrorNote error={act.error} />;
  return { ...act, outcome };
}

function Stands({ at }: { readonly at: readonly Tip[] }) {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  const format = numbers(i18n.language);
  return (
    <div role="status" className="muted">
      {at.map(({ chain, height }) => (
        <div key={chain}>{t("sandbox.stands", { chain: chainName(chain), height: format.format(height) })}</div>
      ))}
    </div>
  );
}
