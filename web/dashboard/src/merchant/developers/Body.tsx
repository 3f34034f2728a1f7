import { Button } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Section } from "../../ui/Page";

/** What was sent, byte for byte, as the signature is of it; or indented, to be read. */
export function Body({ text }: { readonly text: string }) {
  const { t } = useTranslation();
  const clipboard = useClipboard({ timeout: 1500 });
  const [isIndented, setIndented] = useState(false);
  return (
    <Section
      title={t("events.body")}
      actions={
        <>
          <Button
            variant="default"
            aria-pressed={isIndented}
            onClick={() => {
              setIndented(!isIndented);
            }}
          >
            {t("events.indent")}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              clipboard.copy(text);
            }}
          >
            <span role="status">{t(clipboard.copied ? "ui.copied" : "events.copyBody")}</span>
          </Button>
        </>
      }
    >
      <pre className={isIndented ? "code" : "code whole"} tabIndex={0}>
        {isIndented ? JSON.stringify(JSON.parse(text), null, 2) : text}
      </pre>
    </Section>
  );
}
