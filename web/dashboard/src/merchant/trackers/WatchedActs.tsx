import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Confirm } from "../../ui/Confirm";
import { Text } from "../../ui/Text";
import { useProjectId } from "../project";

import { rename, unwatch, type Watched } from "./queries";

const LABEL_MAX = 100;

interface ActsProps {
  readonly token: string;
  readonly watched: Watched;
}

/** Return what has the project's pages read anew. */
export function useForget(): () => Promise<void> {
  const client = useQueryClient();
  const projectId = useProjectId();
  return () => client.invalidateQueries({ queryKey: ["project", projectId] });
}

/** What may be done with one watched address: call it something else, and watch it no more. */
export function WatchedActs({ token, watched }: ActsProps) {
  const { t } = useTranslation();
  const forget = useForget();
  const [open, setOpen] = useState<"rename" | "remove" | null>(null);
  const close = () => {
    setOpen(null);
  };
  return (
    <span className="row end">
      {(["rename", "remove"] as const).map((one) => (
        <Button
          key={one}
          variant="default"
          size="compact-sm"
          onClick={() => {
            setOpen(one);
          }}
        >
          {t(`tracker.${one}`)}
        </Button>
      ))}
      {open === "rename" && <Rename token={token} watched={watched} onClose={close} />}
      {open === "remove" && (
        <Confirm
          title={t("tracker.removeTitle")}
          act={t("tracker.remove")}
          isDangerous
          onConfirm={async () => {
            await unwatch(token, watched.address);
            await forget();
          }}
          onClose={close}
        >
          <Address value={watched.address} whole />
          <p>{t("tracker.removeWords")}</p>
        </Confirm>
      )}
    </span>
  );
}

function Rename({ token, watched, onClose }: ActsProps & { readonly onClose: () => void }) {
  const { t } = useTranslation();
  const forget = useForget();
  const [label, setLabel] = useState(watched.label ?? "");
  return (
    <Confirm
      title={t("tracker.renameTitle")}
      act={t("tracker.rename")}
      onConfirm={async () => {
        await rename(token, watched.address, label.trim());
        await forget();
      }}
      onClose={onClose}
    >
      <Address value={watched.address} whole />
      <Text
        label={t("projects.name")}
        description={t("tracker.renameWords")}
        maxLength={LABEL_MAX}
        autoComplete="off"
        data-autofocus
        value={label}
        onText={setLabel}
      />
    </Confirm>
  );
}
