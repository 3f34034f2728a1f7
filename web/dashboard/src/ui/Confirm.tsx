import { Button, Modal, TextInput } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { asApiError } from "../api/errors";

import { useIsBelow } from "./above";
import styles from "./Confirm.module.css";
import { ErrorNote } from "./Feedback";
import { placesOf, useFocusAfterwards } from "./focus";

interface ConfirmProps {
  readonly title: string;
  /** What will happen, in plain words. */
  readonly children: ReactNode;
  /** What the button says: the act itself. */
  readonly act: string;
  /** What the other button says, where the act is itself some cancelling. */
  readonly dismiss?: string;
  /** What has to be typed first, for what cannot be undone. */
  readonly typed?: string;
  readonly isDangerous?: boolean;
  /** It cannot be done just now; what is below the title says why. */
  readonly isBlocked?: boolean;
  /** The act itself says when it is done, as a part of it may be left to do. */
  readonly staysOpen?: boolean;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}

/** What somebody fills in. Of choices it is the one that is made. */
const FIELDS = "textarea, input:not([type=hidden], [type=radio]:not(:checked))";

/** Have whoever works with keys begin with what is to be filled in first, where anything is and no field is marked. */
function beginWithField(form: HTMLFormElement | null): void {
  const isMarked = form?.querySelector(":is(input, textarea)[data-autofocus]") != null;
  if (!isMarked) form?.querySelector(FIELDS)?.setAttribute("data-autofocus", "true");
}

/**
 * Says what an act does before it is done, and stays until the API has answered: by no key and no click is it closed
 * before, as nobody would see what became of the act. Mounted while it is open.
 */
export function Confirm({
  title,
  children,
  act,
  dismiss,
  typed,
  isDangerous = false,
  isBlocked = false,
  staysOpen = false,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const { t } = useTranslation();
  const isBelow = useIsBelow();
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const [before] = useState(() => placesOf(document.activeElement));
  useFocusAfterwards(before);

  // What was sent before was done, and this is something else: that is for whoever has looked at what was done.
  const isDoneBefore = error !== null && asApiError(error).isDoneBefore;

  function close(): void {
    if (!isSending) onClose();
  }

  async function confirm(): Promise<void> {
    setSending(true);
    setError(null);
    try {
      await onConfirm();
      if (staysOpen) setSending(false);
      else onClose();
    } catch (refused) {
      setError(refused);
      setSending(false);
    }
  }

  return (
    <Modal
      opened
      onClose={close}
      closeOnEscape={!isBelow}
      title={title}
      classNames={{ title: styles.title }}
      closeButtonProps={{ "aria-label": t("ui.close"), disabled: isSending }}
    >
      <form
        ref={beginWithField}
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          // React hands events on to where the dialog was asked for, which may be a form as well.
          event.stopPropagation();
          if (!isBlocked) void confirm();
        }}
      >
        <div className="stack">{children}</div>
        {typed !== undefined && (
          <TextInput
            label={t("confirm.type", { text: typed })}
            value={text}
            autoComplete="off"
            onChange={(event) => {
              setText(event.currentTarget.value);
            }}
          />
        )}
        {error !== null && <ErrorNote error={error} />}
        <div className="row end">
          <Button variant="default" data-autofocus={isDangerous || undefined} disabled={isSending} onClick={close}>
            {dismiss ?? t("ui.cancel")}
          </Button>
          <Button
            type="submit"
            data-autofocus={!isDangerous || undefined}
            loading={isSending}
            disabled={isBlocked || isDoneBefore || (typed !== undefined && text.trim() !== typed)}
            {...(isDangerous ? { color: "red.9" } : {})}
          >
            {act}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
