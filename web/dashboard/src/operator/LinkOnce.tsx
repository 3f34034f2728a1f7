import { Modal } from "@mantine/core";

import { Copyable } from "../ui/Copyable";

import { useWords } from "./api";

/** A link, and whom it lets in. */
export interface Handed {
  readonly name: string;
  readonly email: string;
  readonly link: string;
}

interface LinkOnceProps {
  readonly title: string;
  /** Nothing is shown where there is none. */
  readonly handed: Handed | null;
  readonly onClose: () => void;
}

/** A link that lets somebody in, shown this once. */
export function LinkOnce({ title, handed, onClose }: LinkOnceProps) {
  const { t } = useWords();
  if (handed === null) return null;
  const { name, email, link } = handed;
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
        <p>
          {t("link.for")} <b>{name}</b> <span className="muted">{email}</span>
        </p>
        <p role="alert">{t("link.words")}</p>
        <Copyable text={link}>
          <code className="whole">{link}</code>
        </Copyable>
      </div>
    </Modal>
  );
}
