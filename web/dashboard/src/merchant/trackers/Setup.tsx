import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { asApiError } from "../../api/errors";
import { Confirm } from "../../ui/Confirm";
import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { TestOutcome } from "../developers/TestOutcome";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import { Credentials } from "./Credentials";
import { change, replaceCredentials, sendTest, tokenQuery, type Fresh, type Tracker } from "./queries";

interface SetupProps {
  readonly tracker: Tracker;
  readonly token: string;
}

/** Where a tracker delivers and by what that is checked: a try of it, another URL, other credentials. */
export function Setup({ tracker, token }: SetupProps) {
  const { t } = useTranslation();
  const [open, setOpen] = useState<"change" | "replace" | null>(null);
  const [result, setResult] = useState<Schemas["TestResult"] | null>(null);
  const [fresh, setFresh] = useState<Fresh | null>(null);
  const test = useAct(async () => {
    setResult(null);
    setResult(await sendTest(token));
  });
  const close = () => {
    setOpen(null);
  };
  return (
    <Section title={t("tracker.deliveries")}>
      <div className="stack">
        <p className="muted">{t("tracker.deliveriesWords")}</p>
        <div className="row">
          <Button variant="default" loading={test.isRunning} onClick={() => void test.run()}>
            {t("tracker.test")}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              setOpen("change");
            }}
          >
            {t("tracker.change")}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              setOpen("replace");
            }}
          >
            {t("tracker.replace")}
          </Button>
        </div>
        {test.error !== null && <ErrorNote error={test.error} />}
        {result !== null && <TestOutcome result={result} />}
        {fresh !== null && (
          <>
            <Credentials {...fresh} />
            <div className="row">
              <Button
                onClick={() => {
                  setFresh(null);
                }}
              >
                {t("ui.done")}
              </Button>
            </div>
          </>
        )}
      </div>
      {open === "change" && <Change tracker={tracker} token={token} onClose={close} />}
      {open === "replace" && <Replace tracker={tracker} token={token} onFresh={setFresh} onClose={close} />}
    </Section>
  );
}

/** Sends what is different alone, so that what somebody else changes meanwhile stays. */
function Change({ tracker, token, onClose }: SetupProps & { readonly onClose: () => void }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [before] = useState(tracker);
  const [name, setName] = useState(tracker.name);
  const [url, setUrl] = useState(tracker.url);
  return (
    <Confirm
      title={t("tracker.changeTitle")}
      act={t("tracker.change")}
      onConfirm={async () => {
        await change(token, {
          ...(name.trim() === before.name ? {} : { name: name.trim() }),
          ...(url.trim() === before.url ? {} : { url: url.trim() }),
        });
        // Not waited for: a dialog cannot be closed meanwhile, and the change is done.
        void client.invalidateQueries({ queryKey: ["project", projectId] });
      }}
      onClose={onClose}
    >
      <p>{t("tracker.changeWords")}</p>
      <Text label={t("projects.name")} required value={name} onText={setName} />
      <Text label={t("webhooks.url")} type="url" required value={url} onText={setUrl} />
    </Confirm>
  );
}

interface ReplaceProps extends SetupProps {
  readonly onFresh: (fresh: Fresh) => void;
  readonly onClose: () => void;
}

function Replace({ tracker, token, onFresh, onClose }: ReplaceProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [isUnsure, setUnsure] = useState(false);
  const { queryKey } = tokenQuery(projectId, tracker.webhookId);

  async function replace(): Promise<void> {
    let fresh: Fresh;
    try {
      fresh = await replaceCredentials(token);
    } catch (problem) {
      const { status } = asApiError(problem);
      // Where no answer came, the old token may be good for nothing: which one holds now has to be read.
      if (status <= 0 || status >= 500) setUnsure(true);
      void client.invalidateQueries({ queryKey });
      throw problem;
    }
    // What else is on the page goes on with the new token at once; an answer on its way may still tell the old one.
    await client.cancelQueries({ queryKey });
    client.setQueryData(queryKey, fresh.authToken);
    onFresh(fresh);
  }

  return (
    <Confirm
      title={t("tracker.replaceTitle")}
      act={t("tracker.replace")}
      typed={tracker.name}
      isDangerous
      onConfirm={replace}
      onClose={onClose}
    >
      <p>{t("tracker.replaceWords")}</p>
      {isUnsure && <p role="status">{t("tracker.replaceUnsure")}</p>}
    </Confirm>
  );
}
