import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { ErrorNote, Loading } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Chip } from "../../ui/Status";
import { keysQuery } from "../developers/queries";
import { CheckOutcome, useCheck } from "../developers/Verified";
import { VerifyCode } from "../developers/VerifyCode";
import { usePermitted } from "../project";
import type { Project } from "../queries";

import styles from "./FirstSteps.module.css";
import { PayOne } from "./PayOne";
import { stepsQuery } from "./queries";

const HIDDEN = "cambist-first-steps-hidden";
const LINES = 14;

interface FirstStepsProps {
  readonly project: Project;
  /** What stands below. It comes once it is known how much of the guide is left, so that nothing moves. */
  readonly children: ReactNode;
}

/**
 * The way to a first payment that is paid, and a server that checks what it is told, for whoever may set webhooks up.
 * Each step is done when the API says so.
 */
export function FirstSteps({ project, children }: FirstStepsProps) {
  const { t } = useTranslation();
  const { projectId, paymentWebhookUrl, webhookSigning, signatureCheck } = project;
  const [isHidden, setHidden] = useState(() => hiddenIn().includes(projectId));
  const mayCheck = usePermitted("webhooks");
  const isOffered = mayCheck && !isHidden;
  const keys = useQuery({ ...keysQuery(projectId), enabled: isOffered });
  const steps = useQuery({ ...stepsQuery(projectId), enabled: isOffered });
  const [wasOpen, setWasOpen] = useState(false);
  const hasKey = keys.data !== undefined && keys.data.length > 0;
  const { paidId, hasEndpoint, ...ofEndpoints } = steps.data ?? {
    paidId: null,
    hasEndpoint: false,
    isVerified: false,
  };
  const isTold = paymentWebhookUrl !== null && webhookSigning;
  // The project's own URL hears of everything: while there is one, an endpoint beside it proves nothing of it.
  const isVerified = isTold ? signatureCheck?.result === "verified" : ofEndpoints.isVerified;
  const isDone = hasKey && paidId !== null && isVerified;
  useEffect(() => {
    // Keys are revoked and secrets replaced: what was done once is not left to do again.
    if (isDone) keepHidden(projectId);
  }, [isDone, projectId]);
  if (!isOffered) return children;
  if (keys.data === undefined || steps.data === undefined) {
    // It is a help, and the page is there without it: where nobody can say what is left to do, nothing is said.
    if (keys.isError || steps.isError) return children;
    return (
      <Section title={t("firstSteps.title")}>
        <Loading lines={LINES} />
      </Section>
    );
  }
  if (!isDone && !wasOpen) setWasOpen(true);
  if (isDone && !wasOpen) return children;
  const hide = () => {
    setHidden(true);
    keepHidden(projectId);
  };
  const at = (page: string, label: string) => <Link to={`/${projectId}/${page}`}>{label}</Link>;
  return (
    <>
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
          <Step isDone={hasKey} title={t("firstSteps.key")} words={t("firstSteps.keyWords")}>
            {at("keys", t("firstSteps.toKeys"))}
          </Step>
          <Step isDone={isTold || hasEndpoint} title={t("firstSteps.webhook")} words={t("firstSteps.webhookWords")}>
            {at("settings", t("firstSteps.toSettings"))}
          </Step>
          <Step
            isDone={paidId !== null}
            title={t("firstSteps.payment")}
            words={t("firstSteps.paymentWords")}
            page={paidId === null ? undefined : `/${projectId}/payments/${paidId}`}
          >
            <div className="row">
              <PayOne projectId={projectId} />
            </div>
          </Step>
          <Step isDone={isVerified} title={t("firstSteps.verified")} words={t("firstSteps.verifiedWords")}>
            <VerifyCode />
            {signatureCheck !== null && <p>{t(`verify.words.${signatureCheck.result}`)}</p>}
            <div className="row">
              {isTold && <CheckNow />}
              {at("webhooks", t("nav.webhooks"))}
            </div>
          </Step>
        </ol>
      </Section>
      {children}
    </>
  );
}

/** Has the project's own URL checked right there. */
function CheckNow() {
  const { t } = useTranslation();
  const { act, checked } = useCheck(null);
  return (
    <>
      <Button size="compact-sm" loading={act.isRunning} onClick={() => void act.run()}>
        {t("verify.act")}
      </Button>
      {act.error !== null && <ErrorNote error={act.error} />}
      {checked !== null && <CheckOutcome checked={checked} />}
    </>
  );
}

interface StepProps {
  readonly isDone: boolean;
  readonly title: string;
  readonly words?: string;
  /** Where that is seen which was made by it. */
  readonly page?: string | undefined;
  /** How it is done, which is of no use afterwards. */
  readonly children?: ReactNode;
}

function Step({ isDone, title, words, page, children }: StepProps) {
  const { t } = useTranslation();
  return (
    <li>
      <span className={styles.head}>
        <b>{page === undefined ? title : <Link to={page}>{title}</Link>}</b>
        <Chip tone={isDone ? "good" : "wait"}>{t(isDone ? "firstSteps.isDone" : "firstSteps.isOpen")}</Chip>
      </span>
      {!isDone && (
        <div className={`stack ${styles.how ?? ""}`}>
          <p className="muted">{words}</p>
          {children}
        </div>
      )}
    </li>
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

/** Hide a project's guide from the next visit on. A browser that stores nothing shows it again then. */
function keepHidden(projectId: string): void {
  try {
    localStorage.setItem(HIDDEN, JSON.stringify([...new Set([...hiddenIn(), projectId])]));
  } catch {
    // Storage may be full, or switched off.
  }
}
