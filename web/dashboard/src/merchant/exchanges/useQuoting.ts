import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";

import { toUnits } from "../../ui/units";
import { useAct } from "../../ui/useAct";
import { useRefused } from "../../ui/useRefused";
import { coinKey } from "../coins/queries";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import { feesQuery } from "./queries";
import { quote, type Order, type Quote } from "./quoting";
import { useTargets } from "./targets";

/** A quote, and what it is for. */
export interface Asked {
  readonly order: Order;
  /** How much is given, as it was typed. */
  readonly amount: string;
  readonly quote: Quote;
  /** When the answer came, by this machine's clock. */
  readonly at: number;
}

/**
 * A form that asks for a quote: what of it is typed and chosen, what was refused of it, and the quote. That is for what
 * stood there when it was asked for: as soon as anything is changed there is none, nor does one come that is on its way.
 */
export function useQuoting(given: Schemas["BalanceView"] | undefined) {
  const projectId = useProjectId();
  const { data: fees } = useQuery(feesQuery(projectId));
  const [to, setTo] = useState<string | null>(null);
  const [amount, setAmount] = useState("");
  const [slippage, setSlippage] = useState<number | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  // How often something was changed.
  const changes = useRef(0);
  const targets = useTargets(given);
  const target = targets.groups.flatMap((group) => group.items).find((one) => one.value === to);
  const units = given === undefined ? null : toUnits(amount.trim(), given.decimals);
  const refused = useRefused(given === undefined ? null : coinKey(given));

  /** Note that something was changed, also what is no part of the order. */
  function change(): void {
    changes.current += 1;
    setAsked(null);
    refused.forget();
  }

  const ask = useAct(async () => {
    if (given === undefined || target === undefined || units === null) return;
    const { chain: srcChain, token: srcToken } = given;
    const order = { srcChain, srcToken, srcAmountRaw: units, destChain: target.chain, destToken: target.token };
    const before = changes.current;
    const isStill = () => changes.current === before;
    const found = await refused.noting(() => quote(projectId, order), isStill);
    if (isStill()) setAsked({ order, amount: amount.trim(), quote: found, at: Date.now() });
  });

  return {
    targets,
    to,
    amount,
    /** In percent; the gateway's own where nothing is chosen. */
    slippage: slippage ?? fees?.defaultSlippage,
    setTo: (value: string | null) => {
      change();
      setTo(value);
    },
    setAmount: (text: string) => {
      change();
      setAmount(text);
    },
    setSlippage: (percent: number | null) => {
      change();
      setSlippage(percent);
    },
    change,
    /** Whether what is given and what is to come of it are known. */
    isComplete: units !== null && target !== undefined,
    ask,
    asked,
    refused,
    /** What is sent is what the dialog says, also where the operator changes the default meanwhile. */
    mostLost: (found: Quote) => slippage ?? found.slippagePercent,
  };
}
