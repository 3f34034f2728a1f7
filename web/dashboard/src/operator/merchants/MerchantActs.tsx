import { NumberInput, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { plansQuery } from "../plans/queries";
import { usePermitted } from "../queries";

import { useMerchantsChanged, type MerchantRow } from "./queries";

const CREDITS_MAX = 1_000_000_000;

/** What an operator does about a merchant. What a role may not do is not offered. */
export function MerchantActs({ merchant }: { readonly merchant: MerchantRow }) {
  const { t } = useWords();
  const changed = useMerchantsChanged();
  const may = {
    live: usePermitted("merchants.live"),
    suspend: usePermitted("merchants.suspend"),
    signOut: usePermitted("merchants.sign_out"),
  };
  const { merchantId, live, name } = merchant;
  const params = { path: { merchantId } };
  const isSuspended = merchant.suspendedAt !== null;
  return (
    <>
      {may.live && (
        <ActButton
          isDangerous={live}
          act={t(live ? "merchants.takeBack" : "merchants.grant")}
          title={t(live ? "merchants.takeBackTitle" : "merchants.grantTitle", { name })}
          onConfirm={async () => {
            await unwrap(api.PUT("/api/admin/merchants/{merchantId}", { params, body: { live: !live } }));
            await changed();
          }}
        >
          <p>{t(live ? "merchants.takeBackWords" : "merchants.grantWords")}</p>
        </ActButton>
      )}
      <GivePlan merchant={merchant} />
      {may.signOut && (
        <ActButton
          act={t("merchants.signOut")}
          title={t("merchants.signOutTitle", { name })}
          onConfirm={() => unwrap(api.DELETE("/api/admin/merchants/{merchantId}/sessions", { params }))}
        >
          <p>{t("merchants.signOutWords")}</p>
        </ActButton>
      )}
      {may.suspend &&
        (isSuspended ? (
          <ActButton
            act={t("merchants.reinstate")}
            title={t("merchants.reinstateTitle", { name })}
            onConfirm={async () => {
              await unwrap(api.POST("/api/admin/merchants/{merchantId}/reinstate", { params }));
              await changed();
            }}
          >
            <p>{t("merchants.reinstateWords")}</p>
          </ActButton>
        ) : (
          <ActButton
            isDangerous
            wantsReason
            act={t("merchants.suspend")}
            title={t("merchants.suspendTitle", { name })}
            typed={name}
            onConfirm={async (reason) => {
              await unwrap(api.POST("/api/admin/merchants/{merchantId}/suspend", { params, body: { reason } }));
              await changed();
            }}
          >
            <p>{t("merchants.suspendWords")}</p>
          </ActButton>
        ))}
    </>
  );
}

function GivePlan({ merchant }: { readonly merchant: MerchantRow }) {
  const { t } = useWords();
  const changed = useMerchantsChanged();
  const mayGive = usePermitted("merchants.plan");
  const { data } = useQuery({ ...plansQuery, enabled: mayGive });
  const [planId, setPlanId] = useState(merchant.planId);
  const open = (data?.plans ?? []).filter((one) => one.archivedAt === null || one.planId === merchant.planId);
  if (!mayGive || open.length === 0) return null;
  return (
    <ActButton
      act={t("merchants.givePlan")}
      title={t("merchants.givePlanTitle", { name: merchant.name })}
      onOpen={() => {
        setPlanId(merchant.planId);
      }}
      onConfirm={async () => {
        const params = { path: { merchantId: merchant.merchantId } };
        await unwrap(api.PUT("/api/admin/merchants/{merchantId}/plan", { params, body: { planId } }));
        await changed();
      }}
    >
      <p>{t("merchants.givePlanWords")}</p>
      <Select
        label={t("merchants.plan")}
        placeholder={t("merchants.defaultPlan")}
        clearable
        data={open.map((one) => ({ value: one.planId, label: one.name }))}
        value={planId}
        onChange={setPlanId}
      />
    </ActButton>
  );
}

interface GrantCreditsProps {
  readonly merchantId: string;
  readonly mode: "live" | "sandbox";
}

/** Grants usage credits that were sold: once for each reference, however often it is asked for. */
export function GrantCredits({ merchantId, mode }: GrantCreditsProps) {
  const { t } = useWords();
  const changed = useMerchantsChanged();
  const [amount, setAmount] = useState<number | string>("");
  const [reference, setReference] = useState("");
  if (!usePermitted("merchants.credits")) return null;
  return (
    <ActButton
      isSmall
      act={t("merchants.grantCredits")}
      title={t("merchants.grantCredits")}
      onOpen={() => {
        setAmount("");
        setReference("");
      }}
      onConfirm={async () => {
        const params = { path: { merchantId } };
        const body = { amount: Number(amount), mode, reference: reference.trim() };
        await unwrap(api.POST("/api/admin/merchants/{merchantId}/credits", { params, body }));
        await changed();
      }}
    >
      <p>{t("merchants.grantCreditsWords")}</p>
      <NumberInput
        label={t("merchants.credits")}
        required
        allowDecimal={false}
        min={-CREDITS_MAX}
        max={CREDITS_MAX}
        value={amount}
        onChange={setAmount}
      />
      <Text label={t("merchants.reference")} required maxLength={100} value={reference} onText={setReference} />
    </ActButton>
  );
}
