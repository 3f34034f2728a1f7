import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { CopyButton } from "../../ui/CopyButton";
import { Section } from "../../ui/Page";

/** What was sent, byte for byte, as the signature is of it; or indented, to be read. */
export function Body({ text }: { readonly text: string }) {
  const { t } = useTranslation();
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
          <CopyButton text={text} of={t("events.body")} />
        </>
      }
    >
      <pre className={isIndented ? "code" : "code whole"} tabIndex={0}>
        {isIndented ? JSON.stringify(JSON.parse(text), null, 2) : text}
      </pre>
    </Section>
  );
}
