import { Link, useNavigate } from "@tanstack/react-router";

import { numbers } from "../../ui/format";
import { Facts, Section } from "../../ui/Page";
import { Quoted } from "../../ui/Said";
import { Chip } from "../../ui/Status";
import { Moment } from "../../ui/When";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { useAskerName, usePermitted } from "../queries";

type Verified = Schemas["AuditVerification"];

/** What came of the last comparison of the log with its seals, and having it compared again. */
export function Verification({ last }: { readonly last: Verified | null }) {
  const { t } = useWords();
  return (
    <Section title={t("audit.verification")} actions={usePermitted("audit.verify") && <VerifyButton />}>
      {last === null ? <p className="muted">{t("audit.neverVerified")}</p> : <Result of={last} />}
    </Section>
  );
}

function Result({ of }: { readonly of: Verified }) {
  const { t, i18n } = useWords();
  const askerName = useAskerName();
  const number = numbers(i18n.language);
  return (
    <div className="stack">
      <Facts
        facts={[
          [
            t("audit.result"),
            <Chip key="result" tone={of.agrees ? "good" : "bad"}>
              {t(of.agrees ? "audit.agrees" : "audit.differs")}
            </Chip>,
          ],
          [
            t("jobs.finished"),
            <Link key="job" to={`/jobs/${of.jobId}`}>
              <Moment at={of.finishedAt} />
            </Link>,
          ],
          [t("queue.askedBy"), askerName(of.requestedBy)],
          [t("audit.entries"), number.format(of.entries)],
          [t("audit.seals"), number.format(of.seals)],
          [t("audit.waiting"), number.format(of.waiting)],
          [t("audit.sealsFile"), t(of.comparedWithFile ? "audit.withFile" : "audit.withoutFile")],
        ]}
      />
      {of.problems.length > 0 && (
        <ul aria-label={t("audit.problems")}>
          {of.problems.map((one) => (
            <li key={one}>
              <Quoted words={one} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Has a worker compare every entry, and leads to the job that does. */
function VerifyButton() {
  const { t } = useWords();
  const navigate = useNavigate();
  return (
    <ActButton
      isSmall
      act={t("audit.verify")}
      title={t("audit.verifyTitle")}
      onConfirm={async () => {
        const { job } = await unwrap(api.POST("/api/admin/audit/verify"));
        await navigate({ to: `/jobs/${job.jobId}` });
      }}
    >
      <p>{t("audit.verifyWords")}</p>
    </ActButton>
  );
}
