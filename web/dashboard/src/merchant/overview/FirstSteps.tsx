import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Chip } from "../../ui/Status";
import { useAct } from "../../ui/useAct";
import { api, unwrap } from "../api";
import { coinsQuery } from "../coins/queries";
import { keysQuery } from "../developers/queries";
import { usePermitted } from "../project";
import type { Project } from "../queries";

import { stepsQuery } from "./queries";

const HIDDEN = "cambist-first-steps-hidden";
/** What the payment of the guide is of: it is on a simulated chain. */
const AMOUNT = "10";

/** The way to a first payment that is paid, and told to the shop's server. Each step is done when the API says so. */
export function FirstSteps({ project }: { readonly project: Project }) {
  const { t } = useTranslation();
  const { projectId, paymentWebhookUrl, webhookSigning } = project;
  const keys = useQuery(keysQuery(projectId));
  const steps = useQuery(stepsQuery(projectId));
  const [isHidden, setHidden] = useState(() => hiddenIn().includes(projectId));
  const [wasOpen, setWasOpen] = useState(false);
  const mayBuild = usePermitted("projects.change");
  const mayPay = usePermitted("payments");
  // It is a help, and the page is there without it: while it is not known what is left to do, nothing is said.
  if (isHidden || keys.data === undefined || steps.data === undefined) return null;
  const { isPaid, isTaken } = steps.data;
  const isDone = keys.data.length > 0 && isPaid && isTaken && webhookSigning;
  if (!isDone && !wasOpen) setWasOpen(true);
  if (isDone && !wasOpen) return null;
  const hide = () => {
    localStorage.setItem(HIDDEN, JSON.stringify([...hiddenIn(), projectId]));
    setHidden(true);
  };
  const at = (page: string, label: string) => mayBuild && <Link to={`/${projectId}/${page}`}>{label}</Link>;
  return (
    <Section
      title={t(isDone ? "firstSteps.done" : "firstSteps.title")}
      actions={
        <Button size="compact-sm" variant="default" onClick={hide}>
          {t("firstSteps.hide")}
        </Button>
      }
    >
      <ol className="stack" aria-label={t("firstSteps.title")}>
        <Step isDone title={t("firstSteps.project", { name: project.name })} />
        <Step isDone={keys.data.length > 0} title={t("firstSteps.key")} words={t("firstSteps.keyWords")}>
          {at("keys", t("firstSteps.toKeys"))}
        </Step>
        <Step
          isDone={(paymentWebhookUrl !== null || isTaken) && webhookSigning}
          title={t("firstSteps.webhook")}
          words={t("firstSteps.webhookWords")}
        >
          {at("settings", t("firstSteps.toSettings"))}
        </Step>
        <Step isDone={isPaid} title={t("firstSteps.payment")} words={t("firstSteps.paymentWords")}>
          {mayPay && <PayOne projectId={projectId} />}
        </Step>
        <Step isDone={isTaken && webhookSigning} title={t("firstSteps.verified")} words={t("firstSteps.verifiedWords")}>
          <pre className="code" tabIndex={0}>
            {'HMAC-SHA256(secret, X-Webhook-Timestamp + "." + body) == X-Webhook-Signature'}
          </pre>
          <div className="row">
            {mayPay && isPaid && <PayOne projectId={projectId} />}
            {at("webhooks", t("firstSteps.toLog"))}
          </div>
        </Step>
      </ol>
    </Section>
  );
}

interface StepProps {
  readonly isDone: boolean;
  readonly title: string;
  readonly words?: string;
  /** How it is done, which is of no use afterwards. */
  readonly children?: ReactNode;
}

function Step({ isDone, title, words, children }: StepProps) {
  const { t } = useTranslation();
  return (
    <li>
      <span className="row">
        <b>{title}</b>
        <Chip tone={isDone ? "good" : "wait"}>{t(isDone ? "firstSteps.isDone" : "firstSteps.isOpen")}</Chip>
      </span>
      {!isDone && (
        <div className="stack">
          <p className="muted">{words}</p>
          {children}
        </div>
      )}
    </li>
  );
}

/** Makes a payment in the sandbox and pays it, as a shop and its customer would. */
function PayOne({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const pay = useAct(async () => {
    const coins = (await client.query({ ...coinsQuery(projectId), staleTime: 0 })).filter((one) => one.enabled);
    const coin = coins.find((one) => one.token.startsWith("USD")) ?? coins[0];
    if (coin === undefined) throw new Error(t("payments.noCoins"));
    const path = { projectId };
    const { payment } = await unwrap(
      api.POST("/api/dashboard/projects/{projectId}/payments", {
        params: { path },
        body: { chain: coin.chain, token: coin.token, pricingMode: "direct_crypto", amount: AMOUNT },
      }),
    );
    const { paymentId, requiredConfirmations: confirmations } = payment;
    await unwrap(
      api.POST("/api/dashboard/projects/{projectId}/sandbox/deposit", {
        params: { path },
        body: { paymentId, confirmations },
      }),
    );
    await client.invalidateQueries({ queryKey: ["project", projectId] });
  });
  return (
    <>
      <Button size="compact-sm" loading={pay.isRunning} onClick={() => void pay.run()}>
        {t("firstSteps.pay")}
      </Button>
      {pay.error !== null && <ErrorNote error={pay.error} />}
    </>
  );
}

/** Return the projects whose guide was hidden in this browser. */
function hiddenIn(): readonly string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(HIDDEN) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}
