import { Button, Modal, PinInput } from "@mantine/core";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";

import { onStepUp } from "../api/client";
import type { Session } from "../api/session";

import { ErrorNote } from "./Feedback";
import { Text } from "./Text";

const CODE_DIGITS = 6;
/** Above the dialog whose act needs the code: those have Mantine's 200. */
const ABOVE_DIALOGS = 400;

let session: Session | null = null;

/** Say whose session steps up: the app's own. */
export function stepUpWith(of: Session): void {
  session = of;
}

let isAsking = false;
const listeners = new Set<() => void>();

function say(asking: boolean): void {
  isAsking = asking;
  for (const one of listeners) one();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Say whether a code is asked for just now: then Escape is for that dialog, and not for the one below it. */
export function useIsSteppingUp(): boolean {
  return useSyncExternalStore(subscribe, () => isAsking);
}

/** Asks for a code of the authenticator when an act needs one, wherever that act was asked for. */
export function StepUpDialog() {
  const { t } = useTranslation();
  const isOpen = useIsSteppingUp();
  const [code, setCode] = useState("");
  const [isRecovering, setRecovering] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  // All acts that wait for the same code.
  const waiting = useRef<((steppedUp: boolean) => void)[]>([]);

  useEffect(() => {
    onStepUp(() => {
      setCode("");
      setRecovering(false);
      setError(null);
      say(true);
      return new Promise((resolve) => waiting.current.push(resolve));
    });
    return () => {
      onStepUp(() => Promise.resolve(false));
      say(false);
    };
  }, []);

  function close(steppedUp: boolean): void {
    say(false);
    for (const resolve of waiting.current.splice(0)) resolve(steppedUp);
  }

  async function send(typed: string): Promise<void> {
    if (session === null || isSending) return;
    setSending(true);
    setError(null);
    try {
      await session.stepUp(typed);
      close(true);
    } catch (refused) {
      setError(refused);
      setCode("");
    } finally {
      setSending(false);
    }
  }

  return (
    <Modal
      opened={isOpen}
      zIndex={ABOVE_DIALOGS}
      onClose={() => {
        close(false);
      }}
      title={t("stepUp.title")}
      closeButtonProps={{ "aria-label": t("ui.close") }}
    >
      <form
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
            data-autofocus
            value={code}
            disabled={isSending}
            error={error !== null}
            onChange={setCode}
            onComplete={(typed) => void send(typed)}
            aria-label={t("stepUp.code")}
            getInputProps={(index) => ({ "aria-label": t("stepUp.digit", { number: index + 1 }) })}
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
          <Button
            variant="default"
            onClick={() => {
              close(false);
            }}
          >
            {t("ui.cancel")}
          </Button>
          <Button type="submit" loading={isSending} disabled={code.trim().length < CODE_DIGITS}>
            {t("stepUp.confirm")}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
