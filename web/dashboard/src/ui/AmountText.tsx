import { usePageLanguage } from "./language";
import { dotAsThousands } from "./format";
import { Text, type TextProps } from "./Text";

/**
 * A field for an amount, which is typed with a decimal point. Where the reader's language may group thousands with a dot, it
 * says what `1.000` is taken for: nobody else refuses it, as it is an amount.
 */
export function AmountText({ description, ...rest }: TextProps) {
  const { t, language } = usePageLanguage();
  const read = dotAsThousands(rest.value, language);
  const said = read === null ? null : t("ui.dotWords", { ...read });
  return (
    <>
      <Text
        inputMode="decimal"
        autoComplete="off"
        {...rest}
        description={
          said === null ? (
            description
          ) : (
            <>
              {description} <strong>{said}</strong>
            </>
          )
        }
      />
      {/* A field's description that changes is read to nobody who is in the field. */}
      <span className="unseen" aria-live="polite">
        {said}
      </span>
    </>
  );
}
