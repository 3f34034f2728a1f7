import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { ErrorNote } from "../../ui/Feedback";
import { Meaning } from "../../ui/Meaning";
import { Section } from "../../ui/Page";
import { When } from "../../ui/When";
import { useProjectId } from "../project";
import { paymentResolutionsQuery } from "../resolutions/queries";
import { ResolutionActs } from "../resolutions/ResolutionActs";

/** What came for a payment and waits for a decision, with what can be decided; nothing where nothing does. */
export function Held({ paymentId }: { readonly paymentId: string }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const { data: held = [], error, refetch } = useQuery(paymentResolutionsQuery(projectId, paymentId));
  const note = error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (held.length === 0) return note && <Section title={t("resolutions.title")}>{note}</Section>;
  return (
    <Section title={t("resolutions.title")} flush>
      {note}
      <ol className="timeline">
        {held.map((one) => (
          <li key={one.depositId}>
            <div className="row">
              <Amount value={one.heldAmount} token={one.token} />
              <Meaning of="held" code={one.reason} />
            </div>
            <div className="row muted">
              <Address value={one.txHash} />
              <When at={one.minedAt} />
            </div>
            <ResolutionActs projectId={projectId} resolution={one} />
          </li>
        ))}
      </ol>
    </Section>
  );
}
