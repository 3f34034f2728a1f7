import { useQueryClient } from "@tanstack/react-query";

import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { usePermitted } from "../queries";
import { RowActs, type RowAct } from "../RowActs";

interface ResolutionActsProps {
  readonly held: Schemas["OperatorResolution"];
  /** Whether it stands in a row of a list, where only the first has a button of its own. */
  readonly isRow?: boolean;
}

/**
 * What operators may decide about money that belongs to no order: to count it to one, or else to make it available to its
 * merchant without that. Nothing of it is sent.
 */
export function ResolutionActs({ held, isRow = false }: ResolutionActsProps) {
  const mayDecide = usePermitted("resolutions.decide");
  const accept = useAccept(held);
  const release = useRelease(held);
  if (!mayDecide) return null;
  const acts = [...(held.deposit.canAccept ? [accept] : []), ...(held.canRelease ? [release] : [])];
  if (isRow) return <RowActs of={held.deposit.depositId} acts={acts} />;
  return acts.map(({ id, ...one }, place) => <ActButton key={id} {...one} isMain={place === 0} />);
}

type Held = ResolutionActsProps["held"];

function useAccept(held: Held): RowAct {
  const { t } = useWords();
  const client = useQueryClient();
  const { depositId, accountId } = held.deposit;
  const isOrder = accountId === null;
  return {
    id: "accept",
    act: t(isOrder ? "resolutions.toOrder" : "resolutions.toAccount"),
    title: t(isOrder ? "common:resolutions.accept.title" : "resolutions.toAccountTitle"),
    onConfirm: async () => {
      await unwrap(api.POST("/api/admin/resolutions/{depositId}/accept", { params: { path: { depositId } } }));
      await client.invalidateQueries();
    },
    children: (
      <>
        <What held={held} />
        <p>{t(isOrder ? "resolutions.acceptWords" : "resolutions.toAccountWords")}</p>
      </>
    ),
  };
}

function useRelease(held: Held): RowAct {
  const { t } = useWords();
  const client = useQueryClient();
  const { depositId, canAccept, paymentId, accountId } = held.deposit;
  const words = accountId !== null ? "releaseNotToAccount" : paymentId !== null ? "releaseWords" : "releaseOfNone";
  return {
    id: "release",
    act: t(canAccept ? "resolutions.onlyRelease" : "resolutions.release"),
    title: t("resolutions.releaseTitle"),
    onConfirm: async () => {
      await unwrap(api.POST("/api/admin/resolutions/{depositId}/release", { params: { path: { depositId } } }));
      await client.invalidateQueries();
    },
    children: (
      <>
        <What held={held} />
        <p>{t(`resolutions.${words}`)}</p>
      </>
    ),
  };
}

function What({ held: { deposit, merchantName } }: { readonly held: Held }) {
  return (
    <p>
      <Amount value={deposit.heldAmount} token={deposit.token} /> · <ChainName of={deposit.chain} /> · {merchantName}
    </p>
  );
}
