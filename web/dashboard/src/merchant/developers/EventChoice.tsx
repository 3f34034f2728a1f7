import { Checkbox } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { Choice } from "../../ui/Choice";
import { EVENTS } from "../../ui/events";

import styles from "./EventChoice.module.css";

interface EventChoiceProps {
  /** Null are all, also those that come to be later. */
  readonly events: readonly string[] | null;
  readonly onEvents: (events: readonly string[] | null) => void;
}

/** Which events an endpoint hears of. */
export function EventChoice({ events, onEvents }: EventChoiceProps) {
  const { t } = useTranslation();
  return (
    <div className="stack">
      <div className={styles.which}>
        <Choice
          label={t("endpoint.events")}
          value={events === null ? "all" : "some"}
          options={[
            { value: "all", label: t("endpoint.all") },
            { value: "some", label: t("endpoint.some") },
          ]}
          onChoice={(chosen) => {
            onEvents(chosen === "all" ? null : (events ?? []));
          }}
        />
        <p className="muted">{t(events === null ? "endpoint.allWords" : "endpoint.someWords")}</p>
      </div>
      {events !== null && (
        <Checkbox.Group
          label={t("endpoint.events")}
          value={[...events]}
          onChange={(values) => {
            onEvents(EVENTS.filter((one) => values.includes(one)));
          }}
        >
          <div className={styles.events}>
            {EVENTS.map((one) => (
              <Checkbox key={one} value={one} label={one} />
            ))}
          </div>
        </Checkbox.Group>
      )}
    </div>
  );
}
