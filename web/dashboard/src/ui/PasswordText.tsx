import { PasswordInput, type PasswordInputProps } from "@mantine/core";
import { useTranslation } from "react-i18next";

interface PasswordTextProps extends Omit<PasswordInputProps, "value" | "onChange"> {
  readonly value: string;
  readonly onText: (text: string) => void;
}

/** A password in a form, which can be shown. */
export function PasswordText({ onText, ...rest }: PasswordTextProps) {
  const { t } = useTranslation();
  return (
    <PasswordInput
      {...rest}
      required
      visibilityToggleButtonProps={{ "aria-label": t("signIn.show"), tabIndex: 0 }}
      onChange={(event) => {
        onText(event.currentTarget.value);
      }}
    />
  );
}
