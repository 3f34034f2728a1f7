import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../ui/ChainName";
import { Amount } from "../ui/Amount";
import { Confirm } from "../ui/Confirm";

import { useProjectId } from "./project";

interface CancelSentProps {
  readonly sent: { readonly status: string; readonly amount: string; readonly token: string; readonly chain: string };
  readonly title: string;
  readonly cancel: () => Promise<unknown>;
}

/** Calls back what was not sent yet. Where it was meanwhile, the API says so. */
export function CancelSent({ sent, title, cancel }: CancelSentProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const projectId = useProjectId();
  const [isOpen, setOpen] = useState(false);
  if (sent.status !== "requested" && sent.status !== "processing") return null;
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          setOpen(true);
        }}
      >
        {t("payout.cancel")}
      </Button>
      {isOpen && (
        <Confirm
          title={title}
          act={t("payout.cancelAct")}
          dismiss={t("ui.close")}
          isDangerous
          onConfirm={async () => {
            await cancel();
            void client.invalidateQueries({ queryKey: ["project", projectId] });
          }}
          onClose={() => {
            setOpen(false);
          }}
        >
          <p>
            <Amount value={sent.amount} token={sent.token} /> · <ChainName of={sent.chain} />
          </p>
          <p>{t("payout.cancelWords")}</p>
        </Confirm>
      )}
    </>
  );
}
