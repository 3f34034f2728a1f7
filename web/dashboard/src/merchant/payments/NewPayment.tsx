import { Button, Select, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState, type SyntheticEvent } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { AmountText } from "../../ui/AmountText";
import { asApiError } from "../../api/errors";
import { Choice } from "../../ui/Choice";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { showTime } from "../../ui/format";
import { Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { NoUsableChain } from "../coins/NoUsableChain";
import { coinsQuery, isUsable, type Coin } from "../coins/queries";
import { once } from "../../api/once";
import { Permitted } from "../Permitted";
import { useChainOptions, useProject, useProjectId } from "../project";

import { isMoreRight, More, moreOf, NOTHING_MORE, type MoreTyped } from "./More";
import { Quote } from "./Quote";

const CURRENCIES = ["usd", "eur", "gbp", "jpy", "chf", "try", "brl", "inr"];
type Pricing = "fiat" | "direct_crypto";

/** Making a payment by hand: what a shop does over the API, in what the project takes. */
export function NewPayment() {
  const { t } = useTranslation();
  const query = useQuery(coinsQuery(useProjectId()));
  const mode = useProject()?.mode ?? "live";
  return (
    <Page title={t("payments.new")}>
      <Permitted to="payments">
        <QueryView query={query} lines={6}>
          {(coins) => {
            const usable = coins.filter((one) => isUsable(one, mode));
            if (coins.length > 0 && usable.length === 0) return <NoUsableChain />;
            return <Form coins={usable.filter((one) => one.enabled)} />;
          }}
        </QueryView>
      </Permitted>
    </Page>
  );
}

const nameOf = ({ token, label }: Coin) => (label === token ? token : `${token} · ${label}`);

function Form({ coins }: { readonly coins: readonly Coin[] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const navigate = useNavigate();
  const client = useQueryClient();
  const named = new Map(useChainOptions().map((one) => [one.value, one.label]));
  const [chain, setChain] = useState<string | null>(null);
  const [token, setToken] = useState<string | null>(null);
  const [pricing, setPricing] = useState<Pricing>("fiat");
  const [currency, setCurrency] = useState("usd");
  const [amount, setAmount] = useState("");
  const [orderId, setOrderId] = useState("");
  const [more, setMore] = useState<MoreTyped>(NOTHING_MORE);
  const [madeBefore, setMadeBefore] = useState<MadeBeforeProps | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const refused = error === null ? null : asApiError(error);

  async function send(event: SyntheticEvent): Promise<void> {
    event.preventDefault();
    if (chain === null || token === null) return;
    setSending(true);
    setError(null);
    setMadeBefore(null);
    try {
      const body = {
        chain,
        token,
        pricingMode: pricing,
        amount: amount.trim(),
        ...(pricing === "fiat" ? { fiatCurrency: currency } : {}),
        // As filters and searches look for it: with a blank from a spreadsheet it would never be found.
        ...(orderId.trim() === "" ? {} : { orderId: orderId.trim() }),
        ...moreOf(more),
      };
      const params = { path: { projectId } };
      const { payment, wasMade } = await once(`new payment ${projectId}`, async (idempotencyKey) => {
        const path = "/api/dashboard/projects/{projectId}/payments";
        const answer = await unwrap(api.POST(path, { params, body: { ...body, idempotencyKey } }));
        return { payment: answer.payment, wasMade: answer.idempotent === true };
      });
      void client.invalidateQueries({ queryKey: ["project", projectId, "payments"] });
      if (wasMade) {
        // Of an earlier request whose answer was lost. Whether it is the one that is wanted now, only its sender knows.
        setMadeBefore(payment);
        setSending(false);
        return;
      }
      await navigate({ to: `/${projectId}/payments/${payment.paymentId}` });
    } catch (problem) {
      setError(problem);
      setSending(false);
    }
  }

  const chains = [...new Set(coins.map((one) => one.chain))];
  const payable = coins.filter((one) => one.chain === chain);
  if (coins.length === 0) {
    return (
      <Empty title={t("payments.noCoins")}>
        <Link to={`/${projectId}/coins`}>{t("nav.coins")}</Link>
      </Empty>
    );
  }
  return (
    <Section>
      <form className="stack" onSubmit={(event) => void send(event)}>
        <Select
          label={t("payments.chain")}
          required
          searchable
          value={chain}
          error={refused?.of("chain")}
          data={chains.map((value) => ({ value, label: named.get(value) ?? value }))}
          onChange={(value) => {
            setChain(value);
            setToken(null);
          }}
        />
        <Select
          label={t("payments.token")}
          required
          searchable
          disabled={chain === null}
          value={token}
          error={refused?.of("token")}
          data={payable.map((one) => ({ value: one.token, label: nameOf(one) }))}
          onChange={setToken}
        />
        <Choice
          label={t("payments.pricing")}
          value={pricing}
          options={[
            { value: "fiat", label: t("payments.inFiat") },
            { value: "direct_crypto", label: t("payments.inToken") },
          ]}
          onChoice={setPricing}
        />
        <div className="row">
          <AmountText
            label={t("payments.amount")}
            required
            value={amount}
            error={refused?.of("amount")}
            onText={setAmount}
          />
          {pricing === "fiat" && (
            <Select
              label={t("payments.currency")}
              error={refused?.of("fiatCurrency")}
              data={CURRENCIES.map((one) => ({ value: one, label: one.toUpperCase() }))}
              value={currency}
              onChange={(value) => {
                setCurrency(value ?? "usd");
              }}
            />
          )}
        </div>
        {chain !== null && token !== null && (
          <Quote
            refused={refused?.code}
            ask={{
              chain,
              token,
              pricingMode: pricing,
              amount: amount.trim(),
              ...(pricing === "fiat" ? { fiatCurrency: currency } : {}),
            }}
          />
        )}
        <TextInput
          label={t("payments.order")}
          description={t("payments.orderWords")}
          value={orderId}
          error={refused?.of("orderId")}
          onChange={(event) => {
            setOrderId(event.currentTarget.value);
          }}
        />
        <More typed={more} onTyped={setMore} refused={refused} />
        {madeBefore !== null && <MadeBefore {...madeBefore} />}
        {error !== null && <ErrorNote error={error} />}
        <div className="row">
          <Button type="submit" loading={isSending} disabled={chain === null || token === null || !isMoreRight(more)}>
            {t("payments.create")}
          </Button>
        </div>
      </form>
    </Section>
  );
}

interface MadeBeforeProps {
  readonly paymentId: string;
  readonly createdAt: string;
}

/** Says that an earlier request had made the payment, and leads to it. */
function MadeBefore({ paymentId, createdAt }: MadeBeforeProps) {
  const { t, i18n } = useTranslation();
  return (
    <div role="alert" className="stack">
      <p>{t("payments.madeBefore", { at: showTime(createdAt, i18n.language) })}</p>
      <Link to={`/${useProjectId()}/payments/${paymentId}`}>{t("payments.openMade")}</Link>
    </div>
  );
}
