import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { EVENTS } from "../../ui/events";
import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { useAct } from "../../ui/useAct";

import type { TestResult } from "./queries";
import { TestOutcome } from "./TestOutcome";

const EVENT = "payment.paid";

interface SendTestProps {
  /** Where it goes, in words. */
  readonly words: string;
  readonly send: (event: string) => Promise<TestResult>;
}

/** Sends a made-up event now, and says what was answered. */
export function SendTest({ words, send }: SendTestProps) {
  const { t } = useTranslation();
  const [event, setEvent] = useState(EVENT);
  const [result, setResult] = useState<TestResult | null>(null);
  const test = useAct(async () => {
    setResult(null);
    setResult(await send(event));
  });
  return (
    <Section title={t("webhooks.test")}>
      <form className="stack" onSubmit={test.submit}>
        <p className="muted">{words}</p>
        <div className="row">
          <Select
            aria-label={t("webhooks.event")}
            data={EVENTS}
            value={event}
            onChange={(value) => {
              setEvent(value ?? EVENT);
            }}
          />
          <Button type="submit" variant="default" loading={test.isRunning}>
            {t("webhooks.send")}
          </Button>
        </div>
        {test.error !== null && <ErrorNote error={test.error} />}
        {result !== null && <TestOutcome result={result} />}
      </form>
    </Section>
  );
}
