import { Select } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Empty } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { numbers, showMilliseconds } from "../../ui/format";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { Quoted } from "../../ui/Said";
import { Chip, type Tone } from "../../ui/Status";
import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { usePermitted } from "../queries";

type Chain = Schemas["AdminChainView"];
type Endpoint = Schemas["ChainEndpointView"];

const TONES = {
  checking: "work",
  in_use: "good",
  refused: "bad",
  removed: "calm",
  absent: "calm",
} as const satisfies Record<Endpoint["state"], Tone>;

/** The nodes that a chain is read from, how each of them does, and their replacement. */
export function Endpoints({ chain }: { readonly chain: Chain }) {
  const { t, i18n } = useWords();
  const mayChange = usePermitted("chains.endpoints") && chain.changeable;
  return (
    <Section title={t("chains.endpoints")} flush actions={mayChange && <AddButton chain={chain} />}>
      {chain.endpoints.length === 0 ? (
        <Empty title={t("endpoints.none")} />
      ) : (
        <Plain
          label={t("chains.endpoints")}
          rows={chain.endpoints}
          rowKey={(one) => one.endpointId}
          columns={[
            { id: "name", title: t("record.name"), cell: (one) => <b>{one.name}</b> },
            { id: "state", title: t("record.status"), cell: (one) => <State endpoint={one} /> },
            { id: "head", title: t("chains.head"), atEnd: true, cell: (one) => <Number value={one.head} /> },
            {
              id: "latency",
              title: t("endpoints.latency"),
              atEnd: true,
              cell: (one) =>
                one.latencyMs === null ? (
                  <None />
                ) : (
                  <span className="number">{showMilliseconds(one.latencyMs, i18n.language)}</span>
                ),
            },
            {
              id: "calls",
              title: t("endpoints.calls"),
              atEnd: true,
              cell: (one) => <Number value={one.callsPerMinute} />,
            },
            {
              id: "failures",
              title: t("endpoints.failures"),
              atEnd: true,
              cell: (one) => <Number value={one.failures} />,
            },
            {
              id: "why",
              title: t("chains.problem"),
              cell: (one) => <Why of={one} />,
            },
            {
              id: "acts",
              title: "",
              atEnd: true,
              cell: (one) => mayChange && one.state === "in_use" && <RemoveButton chain={chain} endpoint={one} />,
            },
          ]}
        />
      )}
    </Section>
  );
}

function State({ endpoint }: { readonly endpoint: Endpoint }) {
  const { t } = useWords();
  const isIll = endpoint.state === "in_use" && endpoint.healthy === false;
  return (
    <Chip tone={isIll ? "bad" : TONES[endpoint.state]}>
      {isIll ? t("endpoints.ill") : t(`endpointState.${endpoint.state}`)}
    </Chip>
  );
}

/** Why it is not used, or what it answered last that was no answer. */
function Why({ of: { reason, setAside, lastError } }: { readonly of: Endpoint }) {
  const words = reason ?? setAside ?? lastError;
  return words === null ? <None /> : <Quoted words={words} />;
}

function Number({ value }: { readonly value: number | null }) {
  const { i18n } = useWords();
  return value === null ? <None /> : <span className="number">{numbers(i18n.language).format(value)}</span>;
}

function AddButton({ chain }: { readonly chain: Chain }) {
  const { t } = useWords();
  const client = useQueryClient();
  const [url, setUrl] = useState("");
  const [label, setLabel] = useState("");
  const [replaces, setReplaces] = useState<string | null>(null);
  return (
    <ActButton
      act={t("endpoints.add")}
      title={t("endpoints.addTitle", { chain: chain.name })}
      onConfirm={async () => {
        const params = { path: { chain: chain.chain } };
        const body = { url: url.trim(), label: label.trim() === "" ? null : label.trim(), replaces };
        await unwrap(api.POST("/api/admin/chains/{chain}/endpoints", { params, body }));
        setUrl(""); // it may hold a key
        await client.invalidateQueries({ queryKey: ["chain"] });
      }}
    >
      <p>{t("endpoints.addWords")}</p>
      <Text
        label={t("endpoints.url")}
        required
        type="url"
        autoComplete="off"
        spellCheck={false}
        value={url}
        onText={setUrl}
      />
      <Text label={t("endpoints.label")} description={t("endpoints.labelWords")} value={label} onText={setLabel} />
      <Select
        label={t("endpoints.replaces")}
        description={t("endpoints.replacesWords")}
        clearable
        data={chain.endpoints
          .filter((one) => one.state === "in_use")
          .map((one) => ({ value: one.endpointId, label: one.name }))}
        value={replaces}
        onChange={setReplaces}
      />
    </ActButton>
  );
}

function RemoveButton({ chain, endpoint }: { readonly chain: Chain; readonly endpoint: Endpoint }) {
  const { t } = useWords();
  const client = useQueryClient();
  return (
    <ActButton
      isSmall
      isDangerous
      act={t("endpoints.remove")}
      title={t("endpoints.removeTitle", { name: endpoint.name })}
      typed={endpoint.name}
      onConfirm={async () => {
        const params = { path: { chain: chain.chain, endpointId: endpoint.endpointId } };
        await unwrap(api.DELETE("/api/admin/chains/{chain}/endpoints/{endpointId}", { params }));
        await client.invalidateQueries({ queryKey: ["chain"] });
      }}
    >
      <p>{t("endpoints.removeWords")}</p>
    </ActButton>
  );
}
