import { Select, type SelectProps } from "@mantine/core";
import { useState, type KeyboardEvent } from "react";
import { useTranslation } from "react-i18next";

interface Option {
  readonly value: string;
  readonly label: string;
}

interface SearchSelectProps extends Omit<
  SelectProps,
  "data" | "value" | "onChange" | "searchable" | "searchValue" | "onSearchChange"
> {
  readonly data: readonly (Option | { readonly group: string; readonly items: readonly Option[] })[];
  readonly value: string | null;
  /** Takes what is chosen. While something is typed and not chosen, it is null, and `isSettled` is false. */
  readonly onChoice: (value: string | null, isSettled: boolean) => void;
  readonly onSearch?: (typed: string) => void;
  /** Whether what is offered is what is typed asks for; it may be on its way. */
  readonly isReady?: boolean;
  /** Keeps what was chosen before while somebody types, and goes back to it: nothing is sent with it. */
  readonly isFilter?: boolean;
}

/**
 * Chooses one that is looked for by typing. What stands in the field is what is chosen: as soon as it is not, nothing is
 * chosen, so that nobody sends what they do not read there. Enter takes the first that is offered, and sends no form.
 */
export function SearchSelect(props: SearchSelectProps) {
  const { data, value, onChoice, onSearch, isReady = true, isFilter = false, ...field } = props;
  const { t } = useTranslation();
  const [typed, setTyped] = useState<string | null>(null);
  const [isOpen, setOpen] = useState(false);
  const options = data.flatMap((one) => ("items" in one ? one.items : [one]));
  const chosen = options.find((one) => one.value === value)?.label ?? "";

  function type(text: string | null): void {
    setTyped(text);
    onSearch?.(text ?? "");
  }

  function enter(event: KeyboardEvent<HTMLInputElement>): void {
    if (event.key !== "Enter" || event.nativeEvent.isComposing || (!isOpen && typed === null)) return;
    event.preventDefault();
    // The first that is offered was looked for by what stood here before.
    if (typed !== null && !isReady) event.stopPropagation();
  }

  return (
    <Select
      nothingFoundMessage={t("palette.none")}
      {...field}
      searchable
      allowDeselect={false}
      selectFirstOptionOnChange={typed !== null && isReady}
      data={data.map((one) => ("items" in one ? { ...one, items: [...one.items] } : one))}
      error={typed !== null && !isOpen && !isFilter ? t("ui.notChosen") : field.error}
      value={value}
      onChange={(one) => {
        type(null);
        onChoice(one, true);
      }}
      searchValue={typed ?? chosen}
      onChangeCapture={(event) => {
        const text = event.currentTarget.value;
        if (isFilter) type(text);
        else {
          type(text === "" ? null : text);
          onChoice(null, text === "");
        }
      }}
      onKeyDownCapture={enter}
      onBlur={() => {
        if (isFilter) type(null);
      }}
      onDropdownOpen={() => {
        setOpen(true);
        field.onDropdownOpen?.();
      }}
      onDropdownClose={() => {
        setOpen(false);
        field.onDropdownClose?.();
      }}
    />
  );
}
