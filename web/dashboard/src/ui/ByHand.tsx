import { Modal, Textarea } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { useAbove } from "./above";
import { useFocusAfterwards } from "./focus";

interface ByHandProps {
  readonly text: string;
  /** Where whoever works with keys goes on once it is closed, the nearest first. */
  readonly before: readonly HTMLElement[];
  readonly onClose: () => void;
}

/** Shows a text that the browser did not copy, selected. */
export function ByHand({ text, before, onClose }: ByHandProps) {
  const { t } = useTranslation();
  useAbove();
  useFocusAfterwards(before);
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
