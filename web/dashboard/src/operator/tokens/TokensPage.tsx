import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { CsvButton } from "../../ui/CsvButton";
import { SelectFilter, TextFilter } from "../../ui/Filters";
import { listed, type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { None } from "../../ui/None";
import { Quoted, Trouble } from "../../ui/Said";
import { beginsWith, useListSearch } from "../../ui/search";
import { Chip, type Tone } from "../../ui/Status";
import { api, operatorSession, unwrap, useWords, type Operations, type Schemas } from "../api";
import { ChainFilter } from "../chains/ChainFilter";
import { MerchantLink } from "../merchants/MerchantLink";
import { pricesQuery } from "../prices/queries";
import { ROWS, usePermitted } from "../queries";

import { AddToken } from "./AddToken";
import { SignerLines } from "./SignerLines";
import { TokenActs, type Token } from "./TokenActs";

type NoPrice = NonNullable<Schemas["CoinPrices"]["refusedCode"]>;
type Asked = NonNullable<Operations["listAdminTokens"]["parameters"]["query"]>;

const PATH = "/api/admin/tokens";
const FILTERS = ["chain", "symbol", "state", "sort"] as const;
const BY_CHAIN = "chain";
const TONES = {
  checking: "work",
  enabled: "good",
  disabled: "calm",
  refused: "bad",
  replaced: "calm",
} as const satisfies Record<Token["state"], Tone>;
const STATES = ["checking", "enabled", "disabled", "refused"] as const satisfies readonly NonNullable<Asked["state"]>[];
const POLL_MS = 10_000;

/** The tokens that merchants can be paid in, with those that were added while the gateway runs. */
export function TokensPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const mayChange = usePermitted("tokens.change");
  const query = useQuery({
    queryKey: ["tokens", "list", filters, search.page],
    placeholderData: keepPreviousData,
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => {
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked; // the API checks it
      const answer = await unwrap(api.GET(PATH, { params: { query: asked }, signal }));
      return listed(answer.tokens, answer);
    },
  });
  const { data: prices } = useQuery({ ...pricesQuery, enabled: usePermitted("prices.read") });
  const unpriced = new Map(
    prices?.prices
      .filter(({ rate }) => rate === null)
      .map(({ token, refusedCode }) => [token, refusedCode ?? ("NO_PRICE" as const)]),
  );
  const columns: readonly Column<Token>[] = [
    {
      id: "symbol",
      title: t("common:payments.token"),
      sort: "symbol",
      cell: (one) => <b>{one.symbol ?? <None />}</b>,
    },
    { id: "chain", title: t("record.chain"), sort: "chain", cell: (one) => <ChainName of={one.chain} /> },
    {
      id: "state",
      title: t("record.state"),
      cell: (one) => <Chip tone={TONES[one.state]}>{t(`tokenState.${one.state}`)}</Chip>,
    },
    {
      id: "contract",
      title: t("tokens.contract"),
      cell: (one) => (one.contractAddress === null ? t("tokens.coin") : <Address value={one.contractAddress} />),
    },
    { id: "why", title: t("chains.problem"), cell: (one) => <Why token={one} unpriced={unpriced} /> },
    { id: "whose", title: t("tokens.whose"), cell: (one) => <Whose token={one} /> },
    { id: "acts", title: "", atEnd: true, cell: (one) => mayChange && <TokenActs token={one} /> },
  ];
  return (
    <ListPage
      title={t("nav.tokens")}
      lead={t("tokens.lead")}
      search={search}
      csv={<CsvButton path={PATH} query={filters} name="tokens" session={operatorSession} />}
      create={
        mayChange && (
          <AddToken
            onAdded={(chain) => {
              // Among all of them it would not be found, and its state is what says what became of it.
              search.filter({ chain, symbol: "", state: "" });
            }}
          />
        )
      }
      filters={
        <>
          <ChainFilter value={filters.chain} onFilter={search.set.chain} />
          <TextFilter label={t("common:payments.token")} value={filters.symbol} onFilter={search.set.symbol} />
          <SelectFilter
            label={t("record.state")}
            value={filters.state}
            options={STATES.map((one) => ({ value: one, label: t(`tokenState.${one}`) }))}
            onFilter={search.set.state}
          />
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.symbol ?? ""} ${one.tokenId ?? ""}`}
      {...beginsWith(BY_CHAIN, search)}
      none={t("record.none")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}

interface WhyProps {
  readonly token: Token;
  /** Why symbols have no price. */
  readonly unpriced: ReadonlyMap<string, NoPrice>;
}

/** What keeps it from being used, from being sent, or from being asked for in a currency. */
function Why({ token, unpriced }: WhyProps) {
  const { t } = useWords();
  const { state, symbol, reason, sendableReason, sendableReasonCode } = token;
  const noPrice = state === "enabled" && symbol !== null ? unpriced.get(symbol) : undefined;
  if (reason !== null) return <Quoted words={reason} />;
  if (sendableReason === null && noPrice === undefined) return <None />;
  return (
    <div>
      {sendableReason !== null && (
        <>
          <Trouble code={sendableReasonCode ?? ""} words={sendableReason} />
          <SignerLines token={token} />
        </>
      )}
      {noPrice !== undefined && (
        <div>
          <Link to="/prices">{t(`prices.refused.${noPrice}`)}</Link>
        </div>
      )}
    </div>
  );
}

/** For whom it is on. */
function Whose({ token }: { readonly token: Token }) {
  const { t } = useWords();
  const { defaultEnabled, merchants, state } = token;
  if (state === "refused" || state === "replaced") return <None />;
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
