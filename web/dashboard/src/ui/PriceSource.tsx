import { useTranslation } from "react-i18next";

import { showList } from "./format";

/** How sources of prices write their own names. */
const NAMES: Readonly<Record<string, string>> = { coingecko: "CoinGecko", kraken: "Kraken" };
const MEDIAN = /^median\((.+)\)$/;

/** Return what calls the source of a price by its name, and several of them the median of those. */
export function useSourceName(): (source: string) => string {
  const { t, i18n } = useTranslation();
  const nameOf = (source: string): string =>
    source === "static" ? t("priceSource.static") : (NAMES[source] ?? source);
  return (source) => {
    const several = MEDIAN.exec(source)?.[1]?.split(",");
    if (several === undefined) return nameOf(source);
    return t("priceSource.median", { names: showList(several.map(nameOf), i18n.language, "long") });
  };
}

/** Whose price it is. */
export function PriceSource({ of }: { readonly of: string }) {
  return <bdi>{useSourceName()(of)}</bdi>;
}
