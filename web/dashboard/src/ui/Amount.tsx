import { Copyable } from "./Copyable";
import { showAmount, showFiat } from "./format";
import { usePageLanguage } from "./language";

/** More than any token has. */
const ALL_DECIMALS = 30;

interface AmountProps {
  readonly value: string;
  readonly token?: string | undefined;
  /** Show every digit: somebody is to write another amount beside it. */
  readonly isWhole?: boolean;
}

/** An amount of a token. What is cut off is shown on hover and copied; nothing is ever rounded. */
export function Amount({ value, token, isWhole = false }: AmountProps) {
  const { language } = usePageLanguage();
  const { text, isCut } = showAmount(value, language, isWhole ? ALL_DECIMALS : undefined);
  const whole = token === undefined ? value : `${value} ${token}`;
  return (
    <Copyable text={value} label={whole}>
      <bdi dir="ltr" className="number">
        {text}
        {isCut && "…"}
        {token !== undefined && <span className="muted"> {token}</span>}
      </bdi>
    </Copyable>
  );
}

/** An amount of money in a currency: all of its digits, which are copied as the API says them. */
export function Fiat({ value, currency }: { readonly value: string; readonly currency: string }) {
  const { language } = usePageLanguage();
  return (
    <Copyable text={value} label={`${value} ${currency.toUpperCase()}`}>
      <bdi dir="ltr" className="number">
        {showFiat(value, currency, language)}
      </bdi>
    </Copyable>
  );
}

/** What one of something is worth in something else: all of its digits. */
export function Rate({ value }: { readonly value: string }) {
  const { language } = usePageLanguage();
  return <>{showAmount(value, language, ALL_DECIMALS).text}</>;
}
