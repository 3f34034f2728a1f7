import { useState } from "react";
import { useTranslation } from "react-i18next";

import { asApiError } from "../../api/errors";
import { Choice } from "../../ui/Choice";
import { Confirm } from "../../ui/Confirm";
import { Moment } from "../../ui/When";

/** How long the old secret goes on signing beside the new one, in minutes: a day at most. */
const OVERLAPS = { none: 0, hour: 60, day: 1440 } as const;
type Overlap = keyof typeof OVERLAPS;

interface RotateSecretProps {
  /** What has to be typed. */
  readonly name: string;
  /** Until when the secret before the present one still signs. */
  readonly previousUntil: string | null;
  readonly rotate: (overlapMinutes: number) => Promise<unknown>;
  readonly onClose: () => void;
}

/** Replaces a signing secret, at once or with an overlap, and says what becomes of both. */
export function RotateSecret({ name, previousUntil, rotate, onClose }: RotateSecretProps) {
  const { t } = useTranslation();
  const [overlap, setOverlap] = useState<Overlap>("none");
  const [isUnsure, setUnsure] = useState(false);

  async function confirm(): Promise<void> {
    try {
      await rotate(OVERLAPS[overlap]);
    } catch (problem) {
      const { status } = asApiError(problem);
      // Where no answer came, the new secret may be in force, and nobody has seen it.
      if (status <= 0 || status >= 500) setUnsure(true);
      throw problem;
    }
  }

  return (
    <Confirm
      title={t("settings.rotate")}
      act={t("settings.rotateAct")}
      isDangerous
      typed={name}
      onConfirm={confirm}
      onClose={onClose}
    >
      <Choice
        label={t("rotate.overlap")}
        value={overlap}
        options={(["none", "hour", "day"] as const).map((one) => ({ value: one, label: t(`rotate.overlaps.${one}`) }))}
        onChoice={setOverlap}
      />
      <p>
        {overlap === "none" ? t("settings.rotateWords") : t("rotate.words", { time: t(`rotate.times.${overlap}`) })}
      </p>
      {previousUntil !== null && (
        <p>
          {t("rotate.before")} <Moment at={previousUntil} />
        </p>
      )}
      {isUnsure && <p role="status">{t("rotate.unsure")}</p>}
    </Confirm>
  );
}
