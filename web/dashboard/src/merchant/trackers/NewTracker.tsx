import { Button, Select } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ErrorNote } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { api, unwrap } from "../api";
import { NoUsableChain } from "../coins/NoUsableChain";
import { coinsQuery, useUsableChains } from "../coins/queries";
import { Permitted } from "../Permitted";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import { Credentials } from "./Credentials";

const WHOLE = /^\d+$/;

/** Making a tracker. Its token and secret are shown this once. */
export function NewTracker() {
  const { t } = useTranslation();
  const coins = useQuery(coinsQuery(useProjectId()));
  const chains = useUsableChains();
  const [made, setMade] = useState<Schemas["IssuedTracker"] | null>(null);
  return (
    <Page title={t("tracker.new")} lead={t("tracker.newLead")}>
      <Permitted to="trackers">
        {made === null ? (
          <Section>
            <QueryView query={coins} lines={6}>
              {() => (chains.length === 0 ? <NoUsableChain /> : <Form chains={chains} onMade={setMade} />)}
            </QueryView>
          </Section>
        ) : (
          <Made tracker={made} />
        )}
      </Permitted>
    </Page>
  );
}

interface FormProps {
  readonly chains: ReturnType<typeof useUsableChains>;
  readonly onMade: (made: Schemas["IssuedTracker"]) => void;
}

function Form({ chains, onMade }: FormProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [chain, setChain] = useState<string | null>(null);
  const [startBlock, setStartBlock] = useState("");
  const start = startBlock.trim();
  const isStart = start === "" || WHOLE.test(start);
  const make = useAct(async () => {
    if (chain === null) return;
    const body = {
      name: name.trim(),
      url: url.trim(),
      chain,
      ...(start === "" ? {} : { startBlock: Number(start) }),
    };
    const params = { path: { projectId } };
    const { webhook } = await unwrap(api.POST("/api/dashboard/projects/{projectId}/trackers", { params, body }));
    onMade(webhook);
    await client.invalidateQueries({ queryKey: ["project", projectId, "trackers"] });
  });
  return (
    <form className="stack" onSubmit={make.submit}>
      <Text label={t("projects.name")} required value={name} error={make.error?.of("name")} onText={setName} />
      <Text
        label={t("webhooks.url")}
        description={t("tracker.urlWords")}
        type="url"
        required
        value={url}
        error={make.error?.of("url")}
        onText={setUrl}
      />
      <Select label={t("payments.chain")} required searchable value={chain} data={chains} onChange={setChain} />
      <Text
        label={t("tracker.start")}
        description={t("tracker.startWords")}
        inputMode="numeric"
        value={startBlock}
        error={isStart ? make.error?.of("startBlock") : t("tracker.badStart")}
        onText={setStartBlock}
      />
      {make.error !== null && <ErrorNote error={make.error} />}
      <div className="row">
        <Button type="submit" loading={make.isRunning} disabled={chain === null || !isStart}>
          {t("tracker.make")}
        </Button>
      </div>
    </form>
  );
}

function Made({ tracker }: { readonly tracker: Schemas["IssuedTracker"] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  return (
    <Section title={tracker.name}>
      <div className="stack">
        <Credentials secretKey={tracker.secretKey} authToken={tracker.authToken} />
        <div className="row">
          <Button component={Link} to={`/${projectId}/trackers/${tracker.webhookId}`}>
            {t("tracker.open")}
          </Button>
        </div>
      </div>
    </Section>
  );
}
