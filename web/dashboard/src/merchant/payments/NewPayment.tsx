import { Button, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState, type SyntheticEvent } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { asApiError } from "../../api/errors";
import { ErrorNote, Loading } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { useProject, useProjectId } from "../project";
import { chainsQuery, tokensQuery } from "../queries";

const CURRENCIES = ["usd", "eur", "gbp", "jpy", "chf", "try", "brl", "inr"];
type Pricing = "fiat" | "direct_crypto";

/** Making a payment by hand: what a shop does over the API. */
export function NewPayment() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const project = useProject();
  const navigate = useNavigate();
  const client = useQueryClient();
  const chains = useQuery(chainsQuery);
  const tokens = useQuery(tokensQuery);
  const [chain, setChain] = useState<string | null>(null);
  const [token, setToken] = useState<string | null>(null);
  const [pricing, setPricing] = useState<Pricing>("fiat");
  const [currency, setCurrency] = useState("usd");
  const [amount, setAmount] = useState("");
  const [orderId, setOrderId] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  // One key for one form: a second click, or a retry after a broken connection, makes no second payment.
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const refused = error === null ? null : asApiError(error);

  async function send(event: SyntheticEvent): Promise<void> {
    event.preventDefault();
    if (chain === null || token === null) return;
    setSending(true);
    setError(null);
    try {
      const body = {
        chain,
        token,
        pricingMode: pricing,
        amount: amount.trim(),
        ...(pricing === "fiat" ? { fiatCurrency: currency } : {}),
        ...(orderId === "" ? {} : { orderId }),
        idempotencyKey,
      };
      const params = { path: { projectId } };
      const { payment } = await unwrap(api.POST("/api/dashboard/projects/{projectId}/payments", { params, body }));
      await client.invalidateQueries({ queryKey: ["project", projectId, "payments"] });
      await navigate({ to: `/${projectId}/payments/${payment.paymentId}` });
    } catch (problem) {
      setError(problem);
      setSending(false);
    }
  }

  const problem = chains.error ?? tokens.error;
  if (chains.data === undefined || tokens.data === undefined) {
    return (
      <Page title={t("payments.new")}>
        {problem === null ? (
          <Loading lines={6} />
        ) : (
          <ErrorNote error={problem} onRetry={() => void Promise.all([chains.refetch(), tokens.refetch()])} />
        )}
      </Page>
    );
  }
  const offered = chains.data.filter((one) => project?.mode === "sandbox" || !one.sandboxOnly);
  const payable = tokens.data.filter((one) => one.chain === chain);
  return (
    <Page title={t("payments.new")}>
      <Section>
        <form className="stack" onSubmit={(event) => void send(event)}>
          <Select
            label={t("payments.chain")}
            required
            searchable
            value={chain}
            error={refused?.of("chain")}
            data={offered.map((one) => ({ value: one.chain, label: one.name }))}
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
            data={payable.map((one) => ({ value: one.symbol, label: `${one.symbol} · ${one.label}` }))}
            onChange={setToken}
          />
          <SegmentedControl
            aria-label={t("payments.pricing")}
            value={pricing}
            data={[
              { value: "fiat", label: t("payments.inFiat") },
              { value: "direct_crypto", label: t("payments.inToken") },
            ]}
            onChange={(value) => {
              setPricing(value === "fiat" ? "fiat" : "direct_crypto");
            }}
          />
          <div className="row">
            <TextInput
              label={t("payments.amount")}
              required
              inputMode="decimal"
              value={amount}
              error={refused?.of("amount")}
              onChange={(event) => {
                setAmount(event.currentTarget.value);
              }}
            />
            {pricing === "fiat" && (
              <Select
                label={t("payments.currency")}
                allowDeselect={false}
                data={CURRENCIES.map((one) => ({ value: one, label: one.toUpperCase() }))}
                value={currency}
                onChange={(value) => {
                  setCurrency(value ?? "usd");
                }}
              />
            )}
          </div>
          <TextInput
            label={t("payments.order")}
            description={t("payments.orderWords")}
            value={orderId}
            error={refused?.of("orderId")}
            onChange={(event) => {
              setOrderId(event.currentTarget.value);
            }}
          />
          {error !== null && <ErrorNote error={error} />}
          <div className="row">
            <Button type="submit" loading={isSending} disabled={chain === null || token === null}>
              {t("payments.create")}
            </Button>
          </div>
        </form>
      </Section>
    </Page>
  );
}
