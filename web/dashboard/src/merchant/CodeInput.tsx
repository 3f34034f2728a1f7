import { useTranslation } from "react-i18next";

import { Text } from "../ui/Text";

interface CodeInputProps {
  readonly value: string;
  readonly onText: (text: string) => void;
}

/** Takes a code of the authenticator, where an act wants one of its own; a recovery code as well. */
export function CodeInput({ value, onText }: CodeInputProps) {
  const { t } = useTranslation();
  return (
    <Text
      label={t("signIn.code")}
      description={t("signIn.codeWords")}
      required
      data-autofocus
      autoComplete="one-time-code"
      // Recovery codes have letters: a keyboard of digits alone could not type them.
      inputMode="text"
      autoCapitalize="none"
      autoCorrect="off"
      spellCheck={false}
      value={value}
      onText={onText}
    />
  );
}
