import { NumberInput, Textarea } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { ApiError } from "../../api/errors";
import { keepsNumbers } from "../../ui/raw";
import { Text } from "../../ui/Text";
import type { Schemas } from "../queries";

/** How long a payment may be open, in minutes, by the API. */
const MINUTES_MIN = 5;
const MINUTES_MAX = 10_080;

/** What is typed of a payment beside its price: all of it may be left out. */
export interface MoreTyped {
  readonly customerName: string;
  readonly customerEmail: string;
  readonly successUrl: string;
  readonly cancelUrl: string;
  readonly webhookUrl: string;
  readonly metadata: string;
  readonly minutes: number | null;
}

export const NOTHING_MORE: MoreTyped = {
  customerName: "",
  customerEmail: "",
  successUrl: "",
  cancelUrl: "",
  webhookUrl: "",
  metadata: "",
  minutes: null,
};

/** Return what a text is as a JSON object; null where it is none. */
export function objectOf(text: string): Record<string, unknown> | null {
  try {
    const found: unknown = JSON.parse(text);
    const isObject = typeof found === "object" && found !== null && !Array.isArray(found);
    return isObject ? (found as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Return the name of the text that says why metadata cannot be sent; null where it can. */
function wrongIn(metadata: string): "payments.metadataWrong" | "payments.metadataRounded" | null {
  if (metadata.trim() === "") return null;
  if (objectOf(metadata) === null) return "payments.metadataWrong";
  return keepsNumbers(metadata) ? null : "payments.metadataRounded";
}

/** Say whether what was typed can be sent. */
export function isMoreRight({ metadata }: MoreTyped): boolean {
  return wrongIn(metadata) === null;
}

/** Return it as the API takes it, without what was left out. */
export function moreOf({ minutes, metadata, ...texts }: MoreTyped): Partial<Schemas["CreatePayment"]> {
  const typed = Object.entries(texts).map(([name, text]: [string, string]) => [name, text.trim()] as const);
  const object = metadata.trim() === "" ? null : objectOf(metadata);
  return {
    ...Object.fromEntries(typed.filter(([, text]) => text !== "")),
    ...(minutes === null ? {} : { expiresInMinutes: minutes }),
    ...(object === null ? {} : { metadata: object }),
  };
}

interface MoreProps {
  readonly typed: MoreTyped;
  readonly onTyped: (typed: MoreTyped) => void;
  readonly refused: ApiError | null;
}

/** Who pays, for how long, where the customer goes then, who is told, and what the shop keeps with it. */
export function More({ typed, onTyped, refused }: MoreProps) {
  const { t } = useTranslation();
  const wrong = wrongIn(typed.metadata);
  const text = (name: Exclude<keyof MoreTyped, "minutes" | "metadata">, label: string, type?: "email" | "url") => (
    <Text
      label={label}
      {...(type === undefined ? {} : { type })}
      autoComplete="off"
      value={typed[name]}
      error={refused?.of(name)}
      onText={(value) => {
        onTyped({ ...typed, [name]: value });
      }}
    />
  );
  return (
    <details>
      <summary>{t("payments.more")}</summary>
      <div className="stack">
        {text("customerName", t("payment.customer"))}
        {text("customerEmail", t("signIn.email"), "email")}
        <Minutes
          value={typed.minutes}
          onMinutes={(minutes) => {
            onTyped({ ...typed, minutes });
          }}
        />
        {text("successUrl", t("payment.success"), "url")}
        {text("cancelUrl", t("payment.cancel"), "url")}
        {text("webhookUrl", t("payment.webhook"), "url")}
        <Textarea
          label={t("payment.metadata")}
          description={t("payments.metadataWords")}
          autosize
          minRows={2}
          spellCheck={false}
          value={typed.metadata}
          error={wrong === null ? refused?.of("metadata") : t(wrong)}
          onChange={(event) => {
            onTyped({ ...typed, metadata: event.currentTarget.value });
          }}
        />
      </div>
    </details>
  );
}

interface MinutesProps {
  readonly value: number | null;
  readonly onMinutes: (minutes: number | null) => void;
}

/** How long a payment can be paid; an hour where nothing is said. */
export function Minutes({ value, onMinutes }: MinutesProps) {
  const { t } = useTranslation();
  return (
    <NumberInput
      label={t("payments.minutes")}
      description={t("payments.minutesWords")}
      min={MINUTES_MIN}
      max={MINUTES_MAX}
      allowDecimal={false}
      value={value ?? ""}
      onChange={(typed) => {
        onMinutes(typeof typed === "number" ? typed : null);
      }}
    />
  );
}
