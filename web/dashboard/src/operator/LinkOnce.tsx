import { Modal } from "@mantine/core";

import { Copyable } from "../ui/Copyable";

import { useWords } from "./api";

interface LinkOnceProps {
  readonly title: string;
  readonly link: string;
  readonly onClose: () => void;
}

/** A link that lets somebody in, shown this once. */
export function LinkOnce({ title, link, onClose }: LinkOnceProps) {
  const { t } = useWords();
  return (
    <Modal
      opened
      title={title}
      onClose={onClose}
      closeOnClickOutside={false}
      closeOnEscape={false}
      closeButtonProps={{ "aria-label": t("common:ui.close") }}
    >
      <div className="stack">
        <p role="alert">{t("link.words")}</p>
        <Copyable text={link}>
          <code className="break">{link}</code>
        </Copyable>
      </div>
    </Modal>
  );
}
