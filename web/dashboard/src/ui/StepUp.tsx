import { useEffect, useSyncExternalStore } from "react";

import { onStepUp } from "../api/client";
import { ApiError, asApiError } from "../api/errors";
import type { Session } from "../api/session";

import { useAbove } from "./above";
import { onDemand } from "./onDemand";
import { useEver } from "./useEver";

/** How the dialog is told what to do. */
export interface StepUpProps {
  readonly isOpen: boolean;
  /** Steps up with a code. Throws why it was refused. */
  readonly onCode: (code: string) => Promise<void>;
  readonly onClose: () => void;
}

let session: Session | null = null;

/** Say whose session steps up: the app's own. */
export function stepUpWith(of: Session): void {
  session = of;
}

/** What the API answered to an act that needs a code: it was not done. */
const REFUSED = 403;

/** Whether there is a place for the dialog. */
let isThere = false;
let isAsking = false;
/** All acts that wait for the same code. */
let waiting: ((steppedUp: boolean) => void)[] = [];
const listeners = new Set<() => void>();

function say(asking: boolean): void {
  isAsking = asking;
  for (const one of listeners) one();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function close(steppedUp: boolean): void {
  const those = waiting;
  waiting = [];
  say(false);
  for (const resolve of those) resolve(steppedUp);
}

async function stepUp(code: string): Promise<void> {
  if (session === null) return;
  await session.stepUp(code);
  close(true);
}

const loadDialog = async () => (await import("./StepUpDialog")).StepUpDialog;
const Dialog = onDemand(loadDialog);

/**
 * Ask for a code. Where the dialog does not come, nobody could give one or cancel: the act ends with what went wrong, as
 * one that was refused.
 */
async function ask(): Promise<boolean> {
  try {
    await loadDialog();
  } catch (error) {
    const { code, message } = asApiError(error);
    throw new ApiError(REFUSED, code, message);
  }
  if (!isThere) return false;
  say(true);
  return new Promise((resolve) => waiting.push(resolve));
}

/** Asks for a code of the authenticator when an act needs one, wherever that act was asked for. */
export function StepUp() {
  const isOpen = useSyncExternalStore(subscribe, () => isAsking);
  useAbove(isOpen);
  const wasOpen = useEver(isOpen);
  useEffect(() => {
    isThere = true;
    onStepUp(ask);
    return () => {
      isThere = false;
      onStepUp(() => Promise.resolve(false));
      close(false);
    };
  }, []);
  if (!wasOpen) return null;
  return (
    <Dialog
      isOpen={isOpen}
      onCode={stepUp}
      onClose={() => {
        close(false);
      }}
    />
  );
}
