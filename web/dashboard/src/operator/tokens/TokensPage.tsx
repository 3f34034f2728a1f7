import { Select, Switch } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Empty } from "../../ui/Feedback";
import { Filters, SelectFilter } from "../../ui/Filters";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { useListSearch } from "../../ui/search";
import { Chip, type Tone } from "../../ui/Status";
import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { useChainOptions, usePermitted } from "../queries";

type Token = Schemas["AdminToken"];

const TONES = {
  checking: "work",
  enabled: "good",
  disabled: "calm",
  refused: "bad",
  replaced: "calm",
} as const satisfies Record<Token["state"], Tone>;
const POLL_MS = 10_000;

/** The tokens that merchants can be paid in, with those that were added while the gateway runs. */
export function TokensPage() {
  const { t } = useWords();
  const search = useListSearch(["chain"]);
  const { chain } = search.filters;
  const chains = useChainOptions();
  const mayChange = usePermitted("tokens.change");
  const query = useQuery({
    queryKey: ["tokens", chain],
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => {
      const params = { query: chain === undefined ? {} : { chain } };
      return (await unwrap(api.GET("/api/admin/tokens", { params, signal }))).tokens;
    },
  });
  return (
    <Page title={t("nav.tokens")} lead={t("tokens.lead")} actions={mayChange && <AddButton chains={chains} />}>
      <Section flush>
        <Filters>
          <SelectFilter
            label={t("record.chain")}
            value={chain}
            options={chains}
            onFilter={(chosen) => {
              search.filter({ chain: chosen });
            }}
          />
        </Filters>
        <QueryView query={query} lines={8}>
          {(tokens) =>
            tokens.length === 0 ? (
              <Empty title={t("record.none")} />
            ) : (
              <Plain
                label={t("nav.tokens")}
                rows={tokens}
                rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.symbol ?? ""} ${one.tokenId ?? ""}`}
                columns={[
                  { id: "symbol", title: t("common:payments.token"), cell: (one) => <b>{one.symbol ?? "–"}</b> },
                  { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
                  {
                    id: "state",
                    title: t("record.state"),
                    cell: (one) => <Chip tone={TONES[one.state]}>{t(`tokenState.${one.state}`)}</Chip>,
                  },
                  {
                    id: "contract",
                    title: t("tokens.contract"),
                    cell: (one) =>
                      one.contractAddress === null ? t("tokens.coin") : <Address value={one.contractAddress} />,
                  },
                  { id: "why", title: t("chains.problem"), cell: (one) => one.reason ?? one.sendableReason ?? "–" },
                  { id: "acts", title: "", atEnd: true, cell: (one) => mayChange && <SwitchButton token={one} /> },
                ]}
              />
            )
          }
        </QueryView>
      </Section>
    </Page>
  );
}

function SwitchButton({ token }: { readonly token: Token }) {
  const { t } = useWords();
  const client = useQueryClient();
  const { symbol } = token;
  if (symbol === null || (token.state !== "enabled" && token.state !== "disabled")) return null;
  const isOn = token.state === "enabled";
  return (
    <ActButton
      isSmall
      isDangerous={isOn}
      act={t(isOn ? "tokens.off" : "tokens.on")}
      title={t(isOn ? "tokens.offTitle" : "tokens.onTitle", { symbol, chain: token.chain })}
      onConfirm={async () => {
        const params = { path: { chain: token.chain, symbol } };
        await unwrap(api.PATCH("/api/admin/tokens/{chain}/{symbol}", { params, body: { enabled: !isOn } }));
        await client.invalidateQueries({ queryKey: ["tokens"] });
      }}
    >
      <p>{t(isOn ? "tokens.offWords" : "tokens.onWords")}</p>
    </ActButton>
  );
}

interface AddButtonProps {
  readonly chains: readonly { readonly value: string; readonly label: string }[];
}

function AddButton({ chains }: AddButtonProps) {
  const { t } = useWords();
  const client = useQueryClient();
  const [chain, setChain] = useState<string | null>(null);
  const [contract, setContract] = useState("");
  const [isForAll, setForAll] = useState(true);
  return (
    <ActButton
      act={t("tokens.add")}
      title={t("tokens.addTitle")}
      onConfirm={async () => {
        const body = { chain: chain ?? "", contract: contract.trim(), defaultEnabled: isForAll };
        await unwrap(api.POST("/api/admin/tokens", { body }));
        setContract("");
        await client.invalidateQueries({ queryKey: ["tokens"] });
      }}
    >
      <p>{t("tokens.addWords")}</p>
      <Select label={t("record.chain")} required data={chains} value={chain} onChange={setChain} />
      <Text
        label={t("tokens.contract")}
        required
        autoComplete="off"
        spellCheck={false}
        value={contract}
        onText={setContract}
      />
      <Switch
        label={t("tokens.forAll")}
        checked={isForAll}
        onChange={(event) => {
          setForAll(event.currentTarget.checked);
        }}
      />
    </ActButton>
  );
}
