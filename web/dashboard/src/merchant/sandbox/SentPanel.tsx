import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ErrorNote } from "../../ui/Feedback";
import { useAct } from "../../ui/useAct";
import { api, unwrap } from "../api";
import { usePermitted, useProjectId } from "../project";

import { ChainActs } from "./ChainActs";
import { Panel } from "./Panel";

/** While it is any of these, it may still fail. */
const UNDER_WAY: ReadonlySet<string> = new Set(["requested", "processing", "broadcast", "pending"]);

interface SentPanelProps {
  readonly sent: { readonly status: string; readonly chain: string };
  /** The id of the payout, refund or withdrawal. */
  readonly id: string;
}

/** Has the chain of what leaves the wallet mine it, take it back, or grow older, and has it fail. */
export function SentPanel({ sent: { status, chain }, id }: SentPanelProps) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const mayFail = usePermitted("payouts") && UNDER_WAY.has(status);
  const mayMine = usePermitted("payments");
  if (!mayFail && !mayMine) return null;
  return (
    <Panel>
      {mayMine && <ChainActs chain={chain} />}
      {mayFail && (
        <Fail
          label={t("sandbox.fail")}
          words={t("sandbox.failing")}
          send={() =>
            unwrap(
              api.POST("/api/dashboard/projects/{projectId}/sandbox/fail-payout", { params, body: { payoutId: id } }),
            )
          }
        />
      )}
    </Panel>
  );
}

interface ExchangePanelProps {
  readonly exchange: {
    readonly txnId: string;
    readonly kind: string;
    readonly status: string;
    readonly sourceChain: string;
  };
}

/** Has the chain of a swap or a bridge go on, and has it fail. */
export function ExchangePanel({ exchange: { txnId, kind, status, sourceChain } }: ExchangePanelProps) {
  const { t } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const path = "/api/dashboard/projects/{projectId}/sandbox/fail-exchange";
  const mayFail = usePermitted("exchange") && UNDER_WAY.has(status);
  const mayMine = usePermitted("payments");
  if (!mayFail && !mayMine) return null;
  return (
    <Panel>
      {mayMine && <ChainActs chain={sourceChain} />}
      {mayFail && (
        <div className="row">
          <Fail
            label={t("sandbox.fail")}
            words={t("sandbox.failing")}
            send={() => unwrap(api.POST(path, { params, body: { txnId, how: "revert" } }))}
          />
          {kind === "bridge" && (
            <Fail
              label={t("sandbox.expire")}
              words={t("sandbox.expiring")}
              send={() => unwrap(api.POST(path, { params, body: { txnId, how: "expire" } }))}
            />
          )}
        </div>
      )}
    </Panel>
  );
}

interface FailProps {
  readonly label: string;
  /** What is going to happen, once it was asked for. */
  readonly words: string;
  readonly send: () => Promise<unknown>;
}

function Fail({ label, words, send }: FailProps) {
  const client = useQueryClient();
  const projectId = useProjectId();
  const fail = useAct(async () => {
    await send();
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  });
  return (
    <div className="row">
      <Button variant="default" loading={fail.isRunning} onClick={() => void fail.run()}>
        {label}
      </Button>
      <span role="status">{fail.isDone && words}</span>
      {fail.error !== null && <ErrorNote error={fail.error} />}
    </div>
  );
}
