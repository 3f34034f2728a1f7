import { SelectFilter } from "../../ui/Filters";
import { useWords } from "../api";
import { useChainOptions } from "../queries";

interface ChainFilterProps {
  readonly value: string | undefined;
  readonly onFilter: (chain: string) => void;
}

/** Leaves only what is of one chain. */
export function ChainFilter({ value, onFilter }: ChainFilterProps) {
  const { t } = useWords();
  return <SelectFilter label={t("record.chain")} value={value} options={useChainOptions()} onFilter={onFilter} />;
}
