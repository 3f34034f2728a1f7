import { useTranslation } from "react-i18next";

import { Text } from "../../ui/Text";

import styles from "./UrlField.module.css";

interface UrlFieldProps {
  readonly value: string;
  readonly onText: (text: string) => void;
  /** Where events go already. */
  readonly known: readonly (string | null)[];
}

/** The URL of an endpoint. Of one that is told already, it says that it would be told twice. */
export function UrlField({ value, onText, known }: UrlFieldProps) {
  const { t } = useTranslation();
  return (
    <div>
      <Text
        label={t("webhooks.url")}
        type="url"
        placeholder="https://"
        required
        data-autofocus
        value={value}
        onText={onText}
      />
      {/* It is there before it says anything: screen readers hear what is added to it. */}
      <p role="status" className={styles.twice}>
        {known.includes(value.trim()) ? t("endpoint.twice") : ""}
      </p>
    </div>
  );
}
