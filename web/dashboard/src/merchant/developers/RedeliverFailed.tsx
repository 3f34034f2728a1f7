import { Select } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { gatewayNow } from "../../api/clock";
import { momentOf, typedMoment } from "../../ui/days";
import { Confirm } from "../../ui/Confirm";
import { Text } from "../../ui/Text";
import { useOpened } from "../../ui/useOpened";
import { api, unwrap } from "../api";
import { useProjectId } from "../project";

import { endpointsQuery } from "./queries";

const DAY_MS = 24 * 3_600_000;

/**
 * Sends again what failed since a time: the one the list begins with, or a day ago, unless another one is chosen. It may
 * have an end, and be of one endpoint alone.
 */
export function RedeliverFailed({ from }: { readonly from: string | undefined }) {
  const { t } = useTranslation();
  const { open, close, opener } = useOpened<"redeliver">();
  return (
    <>
      {opener("redeliver", t("events.replay"))}
      {open !== null && <Dialog from={from} onClose={close} />}
    </>
  );
}

interface DialogProps {
  readonly from: string | undefined;
  readonly onClose: () => void;
}

function Dialog({ from, onClose }: DialogProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [typed, setTyped] = useState(() => typedMoment(from === undefined ? gatewayNow() - DAY_MS : Date.parse(from)));
  const [done, setDone] = useState<{ readonly queued: number; readonly more: boolean } | null>(null);
  const [typedEnd, setTypedEnd] = useState("");
  const [endpointId, setEndpointId] = useState<string | null>(null);
  const { data: endpoints = [] } = useQuery(endpointsQuery(projectId));
  const since = momentOf(typed);
  const until = momentOf(typedEnd);

  async function redeliver(): Promise<void> {
    if (since === null) return;
    const params = { path: { projectId } };
    const path = "/api/dashboard/projects/{projectId}/events/redeliver";
    const body = { since, ...(until === null ? {} : { until }), ...(endpointId === null ? {} : { endpointId }) };
    const { queued, more } = await unwrap(api.POST(path, { params, body }));
    setDone({ queued: (done?.queued ?? 0) + queued, more });
    void client.invalidateQueries({ queryKey: ["project", projectId, "events"] });
  }

  return (
    <Confirm
      title={t("events.replayTitle")}
      act={t("events.redeliver")}
      {...(done === null ? {} : { dismiss: t("ui.close") })}
      isBlocked={since === null || done?.more === false}
      staysOpen
      onConfirm={redeliver}
      onClose={onClose}
    >
      <p>{t("events.replayWords")}</p>
      <Text
        type="datetime-local"
        label={t("events.since")}
        required
        value={typed}
        onText={(text) => {
          setTyped(text);
          setDone(null);
        }}
      />
      <Text
        type="datetime-local"
        label={t("list.until")}
        min={typed}
        value={typedEnd}
        onText={(text) => {
          setTypedEnd(text);
          setDone(null);
        }}
      />
      {endpoints.length > 0 && (
        <Select
          label={t("endpoint.one")}
          clearable
          value={endpointId}
          data={endpoints.map((one) => ({ value: one.endpointId, label: one.url }))}
          onChange={(chosen) => {
            setEndpointId(chosen);
            setDone(null);
          }}
        />
      )}
      {done !== null && (
        <p role="status">
          {t("tracker.queued", { count: done.queued })} {done.more && t("events.more")}
        </p>
      )}
    </Confirm>
  );
}
