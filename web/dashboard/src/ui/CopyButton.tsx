import { Button } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { useTranslation } from "react-i18next";

interface CopyButtonProps {
  /** What is copied. */
  readonly text: string;
}

/** Copies something that is too long to be clicked itself, and says that it has. */
export function CopyButton({ text }: CopyButtonProps) {
  const { t } = useTranslation();
  const clipboard = useClipboard({ timeout: 1500 });
  return (
    <Button
      variant="default"
      onClick={() => {
        clipboard.copy(text);
      }}
    >
      <span role="status">{t(clipboard.copied ? "ui.copied" : "events.copyBody")}</span>
    </Button>
  );
}
