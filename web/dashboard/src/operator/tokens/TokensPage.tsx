import { useQuery, useQueryClient } from "@tanstack/react-query";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Empty } from "../../ui/Feedback";
import { Filters, SelectFilter } from "../../ui/Filters";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { useListSearch } from "../../ui/search";
import { Chip, type Tone } from "../../ui/Status";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { useChainOptions, usePermitted } from "../queries";

import { AddToken } from "./AddToken";

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
    <Page title={t("nav.tokens")} lead={t("tokens.lead")} actions={mayChange && <AddToken chains={chains} />}>
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
                  {
                    id: "whose",
                    title: t("tokens.whose"),
                    cell: (one) => <Whose token={one} />,
                  },
                  { id: "acts", title: "", atEnd: true, cell: (one) => mayChange && <Acts token={one} /> },
                ]}
              />
            )
          }
        </QueryView>
      </Section>
    </Page>
  );
}

/** For whom it is on. */
function Whose({ token }: { readonly token: Token }) {
  const { t } = useWords();
  const { defaultEnabled, merchants } = token;
  return (
    <>
      {t(defaultEnabled ? "tokens.everybody" : "tokens.nobody")}
      {merchants.length > 0 && <div className="muted">{t("tokens.apart")}</div>}
    </>
  );
}

function Acts({ token }: { readonly token: Token }) {
  return (
    <span className="row end">
      <DefaultButton token={token} />
      <SwitchButton token={token} />
    </span>
  );
}

/** Changes whether merchants have it for whom nothing else was decided. */
function DefaultButton({ token }: { readonly token: Token }) {
  const { t } = useWords();
  const client = useQueryClient();
  const { symbol, defaultEnabled } = token;
  if (symbol === null || token.state !== "enabled") return null;
  return (
    <ActButton
      isSmall
      isDangerous={defaultEnabled}
      act={t(defaultEnabled ? "tokens.toNobody" : "tokens.toEverybody")}
      title={t(defaultEnabled ? "tokens.toNobodyTitle" : "tokens.toEverybodyTitle", { symbol, chain: token.chain })}
      onConfirm={async () => {
        const params = { path: { chain: token.chain, symbol } };
        const body = { defaultEnabled: !defaultEnabled };
        await unwrap(api.PATCH("/api/admin/tokens/{chain}/{symbol}", { params, body }));
        await client.invalidateQueries({ queryKey: ["tokens"] });
      }}
    >
      <p>{t(defaultEnabled ? "tokens.toNobodyWords" : "tokens.toEverybodyWords")}</p>
    </ActButton>
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
