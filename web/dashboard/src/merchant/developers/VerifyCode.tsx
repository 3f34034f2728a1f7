import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Choice } from "../../ui/Choice";

import styles from "./VerifyCode.module.css";
import node from "./samples/node.txt?raw";
import php from "./samples/php.txt?raw";
import python from "./samples/python.txt?raw";

const SAMPLES = { python, node, php } as const;
const NAMES = { python: "Python", node: "Node.js", php: "PHP" } as const;

/** How a server checks a signature, in the language of whoever reads. */
export function VerifyCode() {
  const { t } = useTranslation();
  const [language, setLanguage] = useState<keyof typeof SAMPLES>("python");
  return (
    <div className="stack">
      <Choice
        label={t("verify.language")}
        size="compact-sm"
        value={language}
        options={(["python", "node", "php"] as const).map((one) => ({ value: one, label: NAMES[one] }))}
        onChoice={setLanguage}
      />
      <pre className={`code ${styles.code ?? ""}`} tabIndex={0} dir="ltr">
        {SAMPLES[language].trimEnd()}
      </pre>
      <p className="muted">{t("verify.secret")}</p>
    </div>
  );
}
