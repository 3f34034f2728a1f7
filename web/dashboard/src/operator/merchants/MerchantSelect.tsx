import { Select, type SelectProps } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, unwrap, useWords } from "../api";

const TYPING_MS = 150;
/** So many are offered at once; whoever looks for another one types more of its name. */
const OFFERED_MAX = 20;

function namedQuery(search: string) {
  return queryOptions({
    queryKey: ["merchant", "named", search],
    queryFn: async ({ signal }) => {
      const params = { query: { limit: OFFERED_MAX, ...(search === "" ? {} : { search }) } };
      return (await unwrap(api.GET("/api/admin/merchants", { params, signal }))).merchants;
    },
  });
}

interface MerchantSelectProps extends Omit<SelectProps, "data" | "value" | "onChange"> {
  /** Its id; nothing where none is chosen. */
  readonly value: string | undefined;
  /** An empty text where none is chosen any more. */
  readonly onMerchant: (merchantId: string) => void;
}

/** Chooses a merchant by whatever a person knows of it: a name, an e-mail address, an id. */
export function MerchantSelect({ value, onMerchant, ...field }: MerchantSelectProps) {
  const { t } = useWords();
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const chosen = useQuery({ ...namedQuery(value ?? ""), enabled: value !== undefined });
  const now = chosen.data?.find((one) => one.merchantId === value);
  // What stands in the field is what was chosen until something else is typed.
  const isTyped = typed !== (now?.name ?? value ?? "");
  const [asked] = useDebouncedValue(isTyped ? typed.trim() : "", TYPING_MS);
  const found = useQuery({ ...namedQuery(asked), enabled: isOpen, placeholderData: keepPreviousData });
  const offered = new Map((found.data ?? []).map((one) => [one.merchantId, one]));
  if (now !== undefined) offered.set(now.merchantId, now);
  const options = [...offered.values()].map((one) => ({ value: one.merchantId, label: one.name }));
  // A merchant that is not known by its name, or not any more, is shown by its id.
  if (value !== undefined && !offered.has(value)) options.push({ value, label: value });
  return (
    <Select
      {...field}
      searchable
      clearable
      data={options}
      filter={({ options: all }) => all}
      nothingFoundMessage={t(
        found.isError ? "common:palette.failed" : found.isPending ? "common:ui.loading" : "common:palette.none",
      )}
      renderOption={({ option }) => (
        <span>
          {option.label} <span className="muted">{offered.get(option.value)?.email}</span>
        </span>
      )}
      value={value ?? null}
      onChange={(merchantId) => {
        onMerchant(merchantId ?? "");
      }}
      searchValue={typed}
      onSearchChange={setTyped}
      onDropdownOpen={() => {
        setOpen(true);
      }}
      onDropdownClose={() => {
        setOpen(false);
      }}
    />
  );
}

interface MerchantFilterProps {
  readonly value: string | undefined;
  readonly onFilter: (merchantId: string) => void;
}

/** Leaves only what is one merchant's. */
export function MerchantFilter({ value, onFilter }: MerchantFilterProps) {
  const { t } = useWords();
  const label = t("record.merchant");
  return <MerchantSelect aria-label={label} placeholder={label} value={value} onMerchant={onFilter} />;
}
