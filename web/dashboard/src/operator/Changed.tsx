/** What others change while a dialog is open: nobody overwrites it without having seen it. */
import { useState } from "react";

import { ApiError } from "../api/errors";
import { Facts } from "../ui/Page";

import { useWords } from "./api";

const NOTHING = "\u2013";

interface Begun<Read> {
  /** What is so now, with the version that a change goes by. */
  readonly now: Read;
  /** Returns the part of it in which changes are looked for. */
  readonly shown: (read: Read) => object;
  readonly readAgain: () => Promise<Read>;
  /** Lets a form take over what others have changed. */
  readonly onChanged?: (read: Read) => void;
}

/**
 * Keeps what a dialog began with. Where the API refuses a change because somebody else was faster, it is read again: what
 * is different is told, and whoever confirms once more sends the same by the version that was read then.
 */
export function useBegun<Read>({ now, shown, readAgain, onChanged }: Begun<Read>) {
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
    changed: differences(shown(begun), shown(read)),
  };
}

type Difference = readonly [name: string, before: string, now: string];

/** Return what is different, by its path. */
function differences(before: object, now: object): readonly Difference[] {
  const [old, fresh] = [new Map(leaves(before)), new Map(leaves(now))];
  return [...new Set([...old.keys(), ...fresh.keys()])]
    .filter((name) => old.get(name) !== fresh.get(name))
    .map((name) => [name, old.get(name) ?? NOTHING, fresh.get(name) ?? NOTHING]);
}

function leaves(value: object, above = ""): [string, string][] {
  return Object.entries(value).flatMap(([name, one]: [string, unknown]): [string, string][] => {
    if (typeof one === "object" && one !== null && !Array.isArray(one)) return leaves(one, `${above}${name}.`);
    if (one === null || one === undefined) return [];
    return [[above + name, typeof one === "string" ? one : JSON.stringify(one)]];
  });
}

/** Tells of each change what it was and what it is. */
export function ChangedMeanwhile({ changed }: { readonly changed: readonly Difference[] }) {
  const { t } = useWords();
  if (changed.length === 0) return null;
  return (
    <section aria-label={t("act.changedMeanwhile")}>
      <h3>{t("act.changedMeanwhile")}</h3>
      <Facts
        facts={changed.map(([name, before, now]) => [
          name,
          <bdi key={name} dir="ltr">{`${before} \u2192 ${now}`}</bdi>,
        ])}
      />
    </section>
  );
}
