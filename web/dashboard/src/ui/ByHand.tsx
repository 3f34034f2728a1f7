import { Modal, Textarea } from "@mantine/core";
import { useTranslation } from "react-i18next";

interface ByHandProps {
  readonly text: string;
  readonly onClose: () => void;
}

/** Shows a text that the browser did not copy, selected. */
export function ByHand({ text, onClose }: ByHandProps) {
  const { t } = useTranslation();
  return (
    <Modal opened title={t("ui.notCopied")} onClose={onClose} closeButtonProps={{ "aria-label": t("ui.close") }}>
      <Textarea
        label={t("ui.copyByHand")}
        readOnly
        autosize
        maxRows={12}
        spellCheck={false}
        data-autofocus
        value={text}
        onFocus={(event) => {
          event.currentTarget.select();
        }}
      />
    </Modal>
  );
}
