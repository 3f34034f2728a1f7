import { useQuery } from "@tanstack/react-query";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Empty } from "../../ui/Feedback";
import { Filters, SelectFilter } from "../../ui/Filters";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Quoted } from "../../ui/Said";
import { useListSearch } from "../../ui/search";
import { Chip, type Tone } from "../../ui/Status";
import { api, unwrap, useWords } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";
import { useChainOptions, usePermitted } from "../queries";

import { AddToken } from "./AddToken";
import { TokenActs, type Token } from "./TokenActs";

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
                  { id: "why", title: t("chains.problem"), cell: (one) => <Why token={one} /> },
                  {
                    id: "whose",
                    title: t("tokens.whose"),
                    cell: (one) => <Whose token={one} />,
                  },
                  { id: "acts", title: "", atEnd: true, cell: (one) => mayChange && <TokenActs token={one} /> },
                ]}
              />
            )
          }
        </QueryView>
      </Section>
    </Page>
  );
}

/** What keeps it from being used, or from being sent. */
function Why({ token: { reason, sendableReason } }: { readonly token: Token }) {
  const words = reason ?? sendableReason;
  return words === null ? "–" : <Quoted words={words} />;
}

/** For whom it is on. */
function Whose({ token }: { readonly token: Token }) {
  const { t } = useWords();
  const { defaultEnabled, merchants } = token;
  return (
    <>
      {t(defaultEnabled ? "tokens.everybody" : "tokens.nobody")}
      {merchants.length > 0 && (
        <ul aria-label={t("tokens.apart")}>
          {merchants.map((one) => (
            <li key={one.merchantId}>
              <MerchantLink of={{ merchantId: one.merchantId, merchantName: one.name }} />{" "}
              <span className="muted">{t(`tokenState.${one.enabled ? "enabled" : "disabled"}`)}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
