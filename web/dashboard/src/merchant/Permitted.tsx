import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Empty } from "../ui/Feedback";
import { Section } from "../ui/Page";

import { usePermitted } from "./project";

interface PermittedProps {
  readonly to: Parameters<typeof usePermitted>[0];
  readonly children: ReactNode;
}

/** What only some roles may do. Whoever comes here by a link is told so before anything is filled in. */
export function Permitted({ to, children }: PermittedProps) {
  const { t } = useTranslation();
  if (usePermitted(to)) return children;
  return (
    <Section>
      <Empty title={t("ui.notPermitted")}>
        <p className="muted">{t("ui.notPermittedWords")}</p>
      </Empty>
    </Section>
  );
}
