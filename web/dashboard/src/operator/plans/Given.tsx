import { Link } from "@tanstack/react-router";

import { numbers } from "../../ui/format";
import { useWords } from "../api";
import { usePermitted } from "../queries";

import type { Plan } from "./queries";

/** How many merchants were given it, and the way to them. */
export function Given({ plan: { planId, merchants } }: { readonly plan: Plan }) {
  const { i18n } = useWords();
  const mayRead = usePermitted("merchants.read");
  const count = <span className="number">{numbers(i18n.language).format(merchants)}</span>;
  return mayRead && merchants > 0 ? (
    <Link to="/merchants" search={{ plan: planId }}>
      {count}
    </Link>
  ) : (
    count
  );
}
