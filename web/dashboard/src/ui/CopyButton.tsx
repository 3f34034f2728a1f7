import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { useCopy } from "./useCopy";

interface CopyButtonProps {
  /** What is copied. */
  readonly text: string;
  /** What that is called: a page may have several of these buttons. */
  readonly of: string;
}

/** Copies something that is too long to be clicked itself, and says that it has. */
export function CopyButton({ text, of }: CopyButtonProps) {
  const { t } = useTranslation();
  const { isCopied, copy, byHand } = useCopy(text);
  return (
    <>
      <Button variant="default" aria-label={t(isCopied ? "events.copiedOf" : "events.copyOf", { of })} onClick={copy}>
        <span role="status">{t(isCopied ? "ui.copied" : "events.copyBody")}</span>
      </Button>
      {byHand}
    </>
  );
}
