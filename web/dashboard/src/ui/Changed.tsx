/** What others change while a dialog is open: nobody overwrites it without having seen it. */
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ApiError } from "../api/errors";

import { Arrow } from "./Arrow";
import { Facts } from "./Page";

const NOTHING = "\u2013";

/** A part of what is changed in a dialog, as the page names and shows it. */
export interface Told {
  /** By which it is found again. */
  readonly key: string;
  readonly title: string;
  /** As the API has it, null for none: what two of them are compared by. */
  readonly value: unknown;
  readonly text: string;
}

interface Begun<Read> {
  /** What is so now, with the version that a change goes by. */
  readonly now: Read;
  /** Returns the parts of it in which changes are looked for. */
  readonly told: (read: Read) => readonly Told[];
  readonly readAgain: () => Promise<Read>;
  /** Lets a form take over what others have changed. */
  readonly onChanged?: (read: Read) => void;
}

/**
 * Keeps what a dialog began with. Where the API refuses a change because somebody else was faster, it is read again: what
 * is different is told, and whoever confirms once more sends the same by the version that was read then.
 */
export function useBegun<Read>({ now, told, readAgain, onChanged }: Begun<Read>) {
  const [begun, setBegun] = useState(now);
  const [read, setRead] = useState(now);

  async function send(act: (read: Read) => Promise<unknown>): Promise<void> {
    try {
      await act(read);
    } catch (error) {
      if (error instanceof ApiError && error.code === "VERSION_MISMATCH") {
        const fresh = await readAgain();
        setRead(fresh);
        onChanged?.(fresh);
      }
      throw error;
    }
  }

  return {
    begin: () => {
      setBegun(now);
      setRead(now);
    },
    send,
    changed: differences(told(begun), told(read)),
  };
}

type Difference = readonly [title: string, before: string, now: string];

/** Return what is different. What was not there before, or is no more, is nothing. */
function differences(before: readonly Told[], now: readonly Told[]): readonly Difference[] {
  const [old, fresh] = [new Map(before.map((one) => [one.key, one])), new Map(now.map((one) => [one.key, one]))];
  return [...new Map([...old, ...fresh])]
    .map(([key, one]) => [one.title, old.get(key), fresh.get(key)] as const)
    .filter(([, was, is]) => JSON.stringify(was?.value ?? null) !== JSON.stringify(is?.value ?? null))
    .map(([title, was, is]) => [title, was?.text ?? NOTHING, is?.text ?? NOTHING]);
}

/** Tells of each change what it was and what it is. */
export function ChangedMeanwhile({ changed }: { readonly changed: readonly Difference[] }) {
  const { t } = useTranslation();
  if (changed.length === 0) return null;
  return (
    <section aria-label={t("changed.title")}>
      <h3>{t("changed.title")}</h3>
      <Facts
        facts={changed.map(([title, before, now]) => [
          title,
          <span key={title}>
            <bdi>{before}</bdi> <Arrow /> <bdi>{now}</bdi>
          </span>,
        ])}
      />
    </section>
  );
}
