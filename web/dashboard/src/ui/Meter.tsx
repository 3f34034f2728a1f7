import { useTranslation } from "react-i18next";

import { numbers } from "./format";
import styles from "./Meter.module.css";

interface MeterProps {
  readonly label: string;
  readonly value: number;
  readonly max: number;
}

/** How much of something there is, or is done: as a bar, and in numbers. */
export function Meter({ label, value, max }: MeterProps) {
  const { t, i18n } = useTranslation();
  const format = numbers(i18n.language);
  const of = t("ui.of", { value: format.format(value), max: format.format(max) });
  return (
    <div className={styles.meter}>
      <span className={styles.words}>
        <span>{label}</span>
        <span className="number muted">{of}</span>
      </span>
      <progress className={styles.bar} value={Math.min(value, max)} max={Math.max(max, 1)} aria-label={label} />
    </div>
  );
}
