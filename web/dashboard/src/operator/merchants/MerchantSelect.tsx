import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { SearchSelect } from "../../ui/SearchSelect";
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

interface MerchantSelectProps {
  readonly label: string;
  /** Has its label for a placeholder. */
  readonly isFilter?: boolean;
  readonly isRequired?: boolean;
  readonly description?: string;
  /** Its id; nothing where none is chosen. */
  readonly value: string | undefined;
  readonly onChoice: (merchantId: string | null, isSettled: boolean) => void;
  /** What is said below, of the merchant's name. */
  readonly words?: (name: string | undefined) => string;
}

/** Chooses a merchant by whatever a person knows of it: a name, an e-mail address, an id. */
function MerchantSelect(props: MerchantSelectProps) {
  const { label, value, onChoice, isFilter = false, isRequired = false, description, words } = props;
  const { t } = useWords();
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const chosen = useQuery({ ...namedQuery(value ?? ""), enabled: value !== undefined });
  const now = chosen.data?.find((one) => one.merchantId === value);
  const [asked] = useDebouncedValue(typed.trim(), TYPING_MS);
  const found = useQuery({ ...namedQuery(asked), enabled: isOpen, placeholderData: keepPreviousData });
  const isReady = asked === typed.trim() && found.isSuccess && !found.isPlaceholderData;
  const offered = new Map((found.data ?? []).map((one) => [one.merchantId, one]));
  if (now !== undefined) offered.set(now.merchantId, now);
  const options = [...offered.values()].map((one) => ({ value: one.merchantId, label: one.name }));
  // A merchant that is not known by its name, or not any more, is shown by its id.
  if (value !== undefined && !offered.has(value)) options.push({ value, label: value });
  const nothing = found.isError
    ? "common:palette.failed"
    : found.isPending
      ? "common:ui.loading"
      : "common:palette.none";
  return (
    <>
      <SearchSelect
        {...(isFilter ? { "aria-label": label, placeholder: label } : { label, description, required: isRequired })}
        clearable
        isFilter={isFilter}
        isReady={isReady}
        data={options}
        filter={({ options: all }) => all}
        nothingFoundMessage={t(nothing)}
        renderOption={({ option }) => (
          <span>
            {option.label} <span className="muted">{offered.get(option.value)?.email}</span>
          </span>
        )}
        value={value ?? null}
        onChoice={onChoice}
        onSearch={setTyped}
        onDropdownOpen={() => {
          setOpen(true);
        }}
        onDropdownClose={() => {
          setOpen(false);
        }}
      />
      {words !== undefined && <p role="status">{words(value === undefined ? undefined : (now?.name ?? value))}</p>}
    </>
  );
}

/** Whom an act concerns: an id, `NOT_CHOSEN` for all, or `null` until one is chosen. */
export type Concerned = string | null;
/** The field is empty. */
export const NOT_CHOSEN = "";

interface MerchantFieldProps {
  readonly value: Concerned;
  readonly onConcerned: (concerned: Concerned) => void;
  /** What an empty field means; otherwise one has to be chosen. */
  readonly emptyWords?: string;
}

/** Chooses whom an act concerns, and says it in words. */
export function MerchantField({ value, onConcerned, emptyWords }: MerchantFieldProps) {
  const { t } = useWords();
  return (
    <MerchantSelect
      label={t("record.merchant")}
      isRequired={emptyWords === undefined}
      {...(emptyWords === undefined ? {} : { description: emptyWords })}
      value={value === null || value === NOT_CHOSEN ? undefined : value}
      onChoice={(merchantId, isSettled) => {
        onConcerned(isSettled ? (merchantId ?? NOT_CHOSEN) : null);
      }}
      words={(name) => {
        if (name !== undefined) return t("record.ofOneMerchant", { name });
        return value === NOT_CHOSEN && emptyWords !== undefined ? t("record.ofAllMerchants") : "";
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
  return (
    <MerchantSelect
      isFilter
      label={t("record.merchant")}
      value={value}
      onChoice={(merchantId) => {
        onFilter(merchantId ?? "");
      }}
    />
  );
}
