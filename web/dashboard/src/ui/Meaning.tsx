import { useTranslation } from "react-i18next";

import type api from "../i18n/en/api.json";

/** What the API has codes for: why money is held, what a movement of the wallet is, and so on. */
export type Codes = keyof typeof api;

/** Return what says in words what a code of the API's means; a code of a later gateway's is shown as it is. */
export function useMeaning(): (of: Codes, code: string) => string {
  const { t, i18n } = useTranslation("api");
  return (of, code) => {
    const key = `${of}.${code}`;
    return i18n.exists(key, { ns: "api" }) ? t(key as "held.late") : code.replaceAll("_", " ");
  };
}

interface MeaningProps {
  readonly of: Codes;
  readonly code: string;
}

export function Meaning({ of, code }: MeaningProps) {
  return useMeaning()(of, code);
}
