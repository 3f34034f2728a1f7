import { createContext, useContext } from "react";

/** What chains are called, by the names that the API has for them. */
const Names = createContext<ReadonlyMap<string, string>>(new Map());

interface ChainNamesProps {
  readonly chains: readonly { readonly value: string; readonly label: string }[];
  readonly children: React.ReactNode;
}

/** Have what is inside call chains by their names. */
export function ChainNames({ chains, children }: ChainNamesProps) {
  return <Names value={new Map(chains.map(({ value, label }) => [value, label]))}>{children}</Names>;
}

/** Return what calls a chain by its name; by the API's where there is no other, as of one that was taken out. */
export function useChainName(): (chain: string) => string {
  const names = useContext(Names);
  return (chain) => names.get(chain) ?? chain;
}

export function ChainName({ of }: { readonly of: string }) {
  return useChainName()(of);
}
