import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Text } from "../../ui/Text";
import { useChains } from "../project";

export interface Refused {
  readonly of: (field: string) => string | undefined;
  readonly forget: () => void;
}

/** Say whether a chain has tags. Also while nobody knows: without its tag, nobody there is credited. */
export function useHasTags(chain: string | undefined): boolean {
  const { data: chains = [] } = useChains();
  return chain !== undefined && chains.find((one) => one.chain === chain)?.hasTags !== false;
}

interface Words {
  readonly label: string;
  readonly description?: string;
  readonly "data-autofocus"?: true;
}

/** To whom money goes: the fields that ask for it, what the API is told, and how a dialog shows it before that. */
export function useRecipient(chain: string | undefined, refused: Refused, words: Words) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  const [tag, tagField] = useTag(chain, refused);
  const address = typed.trim();
  return {
    address,
    body: { toAddress: address, ...(tag === "" ? {} : { toTag: tag }) },
    fields: (
      <>
        <Text
          {...words}
          required
          autoComplete="off"
          spellCheck={false}
          value={typed}
          error={refused.of("toAddress")}
          onText={(text) => {
            refused.forget();
            setTyped(text);
          }}
        />
        {tagField}
      </>
    ),
    shown: (
      <>
        <Address value={address} whole />
        {tag !== "" && (
          <p>
            {t("payout.tag")}: <code>{tag}</code>
          </p>
        )}
      </>
    ),
  };
}

/** Return for whom at a shared address something is, "" for nobody, and the field for it, where the chain has tags. */
function useTag(chain: string | undefined, refused: Refused): readonly [tag: string, field: ReactNode] {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  const hasTags = useHasTags(chain);
  if (!hasTags) return ["", null];
  const field = (
    <Text
      label={t("payout.tag")}
      description={t("withdrawal.tagWords")}
      autoComplete="off"
      value={typed}
      error={refused.of("toTag")}
      onText={(text) => {
        refused.forget();
        setTyped(text);
      }}
    />
  );
  return [typed.trim(), field];
}
