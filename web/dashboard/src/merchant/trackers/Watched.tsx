import { Button, Textarea } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Feedback";
import { Filters, TextFilter } from "../../ui/Filters";
import { numbers } from "../../ui/format";
import { List, type Column } from "../../ui/List";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { When } from "../../ui/When";
import { useProjectId } from "../project";

import { watch, watchedQuery, type Tracker, type Wanted, type Watched as WatchedAddress } from "./queries";
import { TokenCsv } from "./TokenCsv";
import { useForget, WatchedActs } from "./WatchedActs";

const ADDRESSES_MAX = 10_000;

interface WatchedProps {
  readonly tracker: Tracker;
  readonly token: string;
}

/** Return the addresses of a text: one in each line, with a name behind a comma where it has one. */
export function readAddresses(text: string): readonly Wanted[] {
  const found = new Map<string, Wanted>();
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [first = "", ...rest] = line.split(/[,;\t]/);
    const address = first.trim();
    const label = rest.join(",").trim();
    if (address !== "") found.set(address, label === "" ? { address } : { address, label });
  }
  return [...found.values()];
}

function lineOf({ address, label }: Wanted): string {
  return label === undefined ? address : `${address}, ${label}`;
}

/** The addresses on a tracker's list. Its pages are no part of the page's address, which has those of what moved. */
export function Watched({ tracker, token }: WatchedProps) {
  const { t, i18n } = useTranslation();
  const projectId = useProjectId();
  const [page, setPage] = useState(1);
  const [address, setAddress] = useState("");
  const [isAdding, setAdding] = useState(false);
  const query = useQuery(
    watchedQuery(projectId, tracker.webhookId, token, { page, ...(address === "" ? {} : { address }) }),
  );
  const isEmpty = address === "" && (query.data?.total ?? tracker.addresses) === 0;
  const add = () => {
    setAdding(true);
  };
  const columns: readonly Column<WatchedAddress>[] = [
    { id: "address", title: t("payment.address"), cell: (one) => <Address value={one.address} whole /> },
    { id: "label", title: t("projects.name"), cell: (one) => one.label ?? <None /> },
    { id: "added", title: t("tracker.added"), cell: (one) => <When at={one.addedAt} /> },
    {
      id: "acts",
      title: "",
      atEnd: true,
      cell: (one) => <WatchedActs token={token} watched={one} />,
    },
  ];
  return (
    <Section
      title={t("tracker.addresses")}
      flush
      actions={
        !isEmpty && (
          <>
            <TokenCsv
              list="address"
              query={{ address: address === "" ? undefined : address }}
              name="addresses"
              token={token}
            />
            <Button variant="default" onClick={add}>
              {t("tracker.add")}
            </Button>
          </>
        )
      }
    >
      {!isEmpty && (
        <Filters label={t("tracker.addresses")}>
          <TextFilter
            label={t("tracker.find")}
            value={address === "" ? undefined : address}
            onFilter={(text) => {
              setPage(1);
              setAddress(text);
            }}
          />
        </Filters>
      )}
      <List
        label={t("tracker.addresses")}
        columns={columns}
        query={query}
        rowKey={(one) => one.address}
        onPage={setPage}
        isFiltered={address !== ""}
        empty={
          address === "" ? (
            <Empty title={t("tracker.noAddresses")}>
              <p>
                {t(tracker.readsPast ? "tracker.noAddressesPast" : "tracker.noAddressesWords", {
                  block: numbers(i18n.language).format(tracker.startBlock),
                })}
              </p>
              <Button onClick={add}>{t("tracker.add")}</Button>
            </Empty>
          ) : (
            <Empty title={t("tracker.notWatched")} />
          )
        }
      />
      {isAdding && (
        <Add
          tracker={tracker}
          token={token}
          onClose={() => {
            setAdding(false);
          }}
        />
      )}
    </Section>
  );
}

function Add({ token, onClose }: WatchedProps & { readonly onClose: () => void }) {
  const { t } = useTranslation();
  const forget = useForget();
  const [text, setText] = useState("");
  const [refused, setRefused] = useState<readonly { readonly address: string; readonly reason: string | null }[]>([]);
  const wanted = readAddresses(text);

  async function add(): Promise<void> {
    const { results } = await watch(token, wanted);
    await forget();
    const left = results.filter((one) => one.result === "invalid" || one.result === "over_limit");
    // What was refused stays in the dialog with its reason; the others are watched.
    setRefused(left);
    setText(
      left
        .flatMap((one) => wanted[one.index] ?? [])
        .map(lineOf)
        .join("\n"),
    );
    if (left.length === 0) onClose();
  }

  return (
    <Confirm
      title={t("tracker.add")}
      act={t("tracker.watch")}
      isBlocked={wanted.length === 0 || wanted.length > ADDRESSES_MAX}
      staysOpen
      onConfirm={add}
      onClose={onClose}
    >
      <Textarea
        label={t("tracker.addresses")}
        description={t("tracker.addWords")}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
        }}
      />
      {refused.length > 0 && (
        <div role="alert">
          <p>{t("tracker.refused", { count: refused.length })}</p>
          <ul>
            {refused.map((one) => (
              <li key={one.address}>
                <code>{one.address}</code> {one.reason}
              </li>
            ))}
          </ul>
        </div>
      )}
    </Confirm>
  );
}
