import { Button, Modal, PinInput } from "@mantine/core";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";

import styles from "./Confirm.module.css";
import { ErrorNote } from "./Feedback";
import type { StepUpProps } from "./StepUp";
import { Text } from "./Text";

const CODE_DIGITS = 6;
/** Above the dialog whose act needs the code: those have Mantine's 200. */
const ABOVE_DIALOGS = 400;

/** Asks for a code of the authenticator, or for one of those that are kept for when it is lost. */
export function StepUpDialog({ isOpen, onCode, onClose }: StepUpProps) {
  const { t } = useTranslation();
  // It opens once it is there: so it knows where the focus was, and gives it back.
  const isOpened = useDeferredValue(isOpen, false);
  const [wasOpen, setWasOpen] = useState(isOpen);
  const [time, setTime] = useState(0);
  if (isOpen !== wasOpen) {
    setWasOpen(isOpen);
    if (isOpen) setTime(time + 1);
  }
  return (
    <Modal
      opened={isOpened}
      zIndex={ABOVE_DIALOGS}
      onClose={onClose}
      title={t("stepUp.title")}
      classNames={{ title: styles.title }}
      closeButtonProps={{ "aria-label": t("ui.close") }}
    >
      <CodeForm key={time} onCode={onCode} onClose={onClose} />
    </Modal>
  );
}

/** What was typed, and what was wrong with it, is gone with the dialog, and when a code is asked for anew. */
function CodeForm({ onCode, onClose }: Omit<StepUpProps, "isOpen">) {
  const { t } = useTranslation();
  const [code, setCode] = useState("");
  const [isRecovering, setRecovering] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);

  const form = useRef<HTMLFormElement>(null);

  // What is disabled while it is sent loses the focus. After a wrong code the next one is typed.
  useEffect(() => {
    if (error !== null && !isSending) form.current?.querySelector<HTMLElement>("[data-autofocus]")?.focus();
  }, [error, isSending]);

  async function send(typed: string): Promise<void> {
    if (isSending) return;
    setSending(true);
    setError(null);
    try {
      await onCode(typed);
    } catch (refused) {
      setError(refused);
      setCode("");
    } finally {
      setSending(false);
    }
  }

  return (
    <form
      ref={form}
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send(code.trim());
      }}
    >
      <p>{t("stepUp.words")}</p>
      {isRecovering ? (
        <Text
          label={t("stepUp.recovery")}
          required
          autoFocus
          data-autofocus
          autoComplete="off"
          autoCapitalize="none"
          autoCorrect="off"
          spellCheck={false}
          value={code}
          disabled={isSending}
          onText={setCode}
        />
      ) : (
        <PinInput
          dir="ltr"
          length={CODE_DIGITS}
          type="number"
          inputMode="numeric"
          oneTimeCode
          value={code}
          disabled={isSending}
          error={error !== null}
          onChange={setCode}
          onComplete={(typed) => void send(typed)}
          aria-label={t("stepUp.code")}
          getInputProps={(index) => ({
            "aria-label": t("stepUp.digit", { number: index + 1 }),
            // What is said of the field as a whole stands at its frame, which cannot have the focus.
            ...(index === 0 && { "data-autofocus": true }),
          })}
        />
      )}
      <div className="row">
        <Button
          variant="subtle"
          size="compact-sm"
          disabled={isSending}
          onClick={() => {
            setCode("");
            setError(null);
            setRecovering(!isRecovering);
          }}
        >
          {t(isRecovering ? "stepUp.useDigits" : "stepUp.useRecovery")}
        </Button>
      </div>
      {error !== null && <ErrorNote error={error} />}
      <div className="row end">
        <Button variant="default" onClick={onClose}>
          {t("ui.cancel")}
        </Button>
        <Button type="submit" loading={isSending} disabled={code.trim().length < CODE_DIGITS}>
          {t("stepUp.confirm")}
        </Button>
      </div>
    </form>
  );
}
