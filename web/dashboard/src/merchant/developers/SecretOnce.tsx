import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { Secret } from "../../ui/Secret";

interface SecretOnceProps {
  readonly secret: string;
  readonly onDone?: () => void;
}

/** A signing secret, which is shown this once. */
export function SecretOnce({ secret, onDone }: SecretOnceProps) {
  const { t } = useTranslation();
  return (
    <div className="stack">
      <p role="alert">{t("projects.secretWords")}</p>
      <Secret text={secret} label={t("projects.secretCopy")} />
      {onDone !== undefined && (
        <div className="row">
          <Button onClick={onDone}>{t("ui.done")}</Button>
        </div>
      )}
    </div>
  );
}
