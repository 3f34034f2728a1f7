import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { Short } from "../../ui/Short";
import { useWords } from "../api";
import { usePermitted } from "../queries";

interface MerchantLinkProps {
  readonly of: { readonly merchantId: string | null; readonly merchantName?: string | null };
  /** What is said of what is no merchant's; that it is the gateway's own where nothing else is. */
  readonly none?: ReactNode;
}

/** Whose something is, and the way to that merchant's page. */
export function MerchantLink({ of: { merchantId, merchantName }, none }: MerchantLinkProps) {
  const { t } = useWords();
  const mayRead = usePermitted("merchants.read");
  if (merchantId === null) return none ?? t("gateway");
  const name = <Short text={merchantName ?? merchantId} inLink={mayRead} />;
  return mayRead ? <Link to={`/merchants/${merchantId}`}>{name}</Link> : name;
}
