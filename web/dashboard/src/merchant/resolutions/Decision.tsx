import { Button, Modal } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { useIsBelow } from "../../ui/above";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Meaning } from "../../ui/Meaning";
import { Facts } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Moment } from "../../ui/When";
import { useProjectId } from "../project";

import { resolutionQuery, type Resolution } from "./queries";

/** What was decided about a deposit that was held, when, and about how much of it. */
export function Decision({ depositId }: { readonly depositId: string }) {
  const { t } = useTranslation();
  const isBelow = useIsBelow();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => {
          setOpen(true);
        }}
      >
        {t("resolutions.decision")}
      </Button>
      {isOpen && (
        <Modal
          opened
          onClose={() => {
            setOpen(false);
          }}
          title={t("resolutions.decision")}
          closeOnEscape={!isBelow}
          closeButtonProps={{ "aria-label": t("ui.close") }}
        >
          <Decided depositId={depositId} />
        </Modal>
      )}
    </>
  );
}

function Decided({ depositId }: { readonly depositId: string }) {
  const query = useQuery(resolutionQuery(useProjectId(), depositId));
  return <QueryView query={query}>{(resolution) => <Told resolution={resolution} />}</QueryView>;
}

function Told({ resolution }: { readonly resolution: Resolution }) {
  const { t } = useTranslation();
  const { resolution: decided, resolvedAt, reason, heldAmount, token, fromAddress, txHash } = resolution;
  return (
    <Facts
      narrow
      facts={[
        [
          t("resolutions.decision"),
          decided === null ? null : <Meaning key="decision" of="resolution" code={decided} />,
        ],
        [t("resolutions.decidedAt"), resolvedAt === null ? null : <Moment key="when" at={resolvedAt} />],
        [t("wallet.held"), <Amount key="held" value={heldAmount} token={token} />],
        [t("resolutions.why"), <Meaning key="why" of="held" code={reason} />],
        [t("resolutions.sender"), fromAddress === null ? null : <Address key="sender" value={fromAddress} />],
        [t("statement.tx"), <Address key="tx" value={txHash} />],
      ]}
    />
  );
}
