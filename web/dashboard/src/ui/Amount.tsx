import { Copyable } from "./Copyable";
import { showAmount, showFiat } from "./format";
import { usePageLanguage } from "./language";

interface AmountProps {
  readonly value: string;
  readonly token?: string | undefined;
}

/** An amount of a token. What is cut off is shown on hover and copied; nothing is ever rounded. */
export function Amount({ value, token }: AmountProps) {
  const { language } = usePageLanguage();
  const { text, isCut } = showAmount(value, language);
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

const RATE_DECIMALS = 30;

/** What one of something is worth in something else: all of its digits. */
export function Rate({ value }: { readonly value: string }) {
  const { language } = usePageLanguage();
  return <>{showAmount(value, language, RATE_DECIMALS).text}</>;
}
