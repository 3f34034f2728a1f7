import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { Copyable } from "../../ui/Copyable";
import { Facts, Section } from "../../ui/Page";
import { Chip } from "../../ui/Status";
import { Text } from "../../ui/Text";
import { When } from "../../ui/When";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { useAskerName, usePermitted } from "../queries";

import { Height } from "./ChainsPage";
import styles from "./Steering.module.css";

const WHAT = ["watching", "sending"] as const;

interface SteeringProps {
  readonly chain: Schemas["AdminChainView"];
}

/** Pausing and resuming what is done on a chain, and reading blocks again. */
export function Steering({ chain }: SteeringProps) {
  const { t } = useWords();
  const client = useQueryClient();
  const askerName = useAskerName();
  const mayPause = usePermitted("chains.pause");
  const mayResume = usePermitted("chains.resume");
  const mayRescan = usePermitted("chains.rescan");
  const params = { path: { chain: chain.chain } };
  const changed = () => client.invalidateQueries({ queryKey: ["chain"] });
  return (
    <Section title={t("steering.title")} actions={mayRescan && <RescanButton chain={chain} />}>
      <ul className={styles.all}>
        {WHAT.map((what) => {
          const pause = chain.pauses.find((one) => one.what === what);
          return (
            <li key={what} className={styles.one}>
              <b>{t(`steering.${what}`)}</b>
              <span>
                {pause === undefined ? (
                  <Chip tone="good">{t("steering.goesOn")}</Chip>
                ) : (
                  <>
                    {t("steering.pausedBy", { by: askerName(pause.pausedBy), reason: pause.reason })} ·{" "}
                    <When at={pause.pausedAt} />
                  </>
                )}
              </span>
              {pause === undefined && mayPause && (
                <ActButton
                  isSmall
                  isDangerous
                  wantsReason
                  act={t("steering.pause")}
                  title={t(`steering.pauseTitle.${what}`, { chain: chain.name })}
                  onConfirm={async (reason) => {
                    await unwrap(api.POST("/api/admin/chains/{chain}/pause", { params, body: { what, reason } }));
                    await changed();
                  }}
                >
                  <p>{t(`steering.pauseWords.${what}`)}</p>
                </ActButton>
              )}
              {pause !== undefined && mayResume && (
                <ActButton
                  isSmall
                  wantsReason
                  act={t("steering.resume")}
                  title={t(`steering.resumeTitle.${what}`, { chain: chain.name })}
                  onConfirm={async (reason) => {
                    await unwrap(api.POST("/api/admin/chains/{chain}/resume", { params, body: { what, reason } }));
                    await changed();
                  }}
                >
                  <p>{t(`steering.resumeWords.${what}`)}</p>
                </ActButton>
              )}
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

/** A block's height, to be read, and to be copied as it is typed. */
function Block({ height }: { readonly height: number }) {
  return (
    <Copyable text={String(height)}>
      <Height value={height} />
    </Copyable>
  );
}

/** Has a worker read blocks again, and leads to the job that does. */
function RescanButton({ chain }: SteeringProps) {
  const { t } = useWords();
  const navigate = useNavigate();
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const { rescanFrom, height: last } = chain;
  const height = { inputMode: "numeric", pattern: "[0-9]+", autoComplete: "off" } as const;
  return (
    <ActButton
      wantsReason
      whyNot={rescanFrom === null ? t("rescan.notRead") : undefined}
      act={t("rescan.act")}
      title={t("rescan.title", { chain: chain.name })}
      onConfirm={async (reason) => {
        const heights = { fromHeight: Number(from), ...(to === "" ? {} : { toHeight: Number(to) }) };
        const params = { path: { chain: chain.chain } };
        const body = { ...heights, reason };
        const { jobId } = await unwrap(api.POST("/api/admin/chains/{chain}/rescan", { params, body }));
        await navigate({ to: `/jobs/${jobId}` });
      }}
    >
      <p>{t("rescan.words")}</p>
      <Facts
        narrow
        facts={[
          [t("rescan.lowest"), rescanFrom === null ? null : <Block key="lowest" height={rescanFrom} />],
          [t("chains.height"), last === null ? null : <Block key="last" height={last} />],
        ]}
      />
      <p className="muted">{t("rescan.lowestWords")}</p>
      <Text label={t("rescan.from")} required value={from} onText={setFrom} {...height} />
      <Text label={t("rescan.to")} description={t("rescan.toWords")} value={to} onText={setTo} {...height} />
    </ActButton>
  );
}
