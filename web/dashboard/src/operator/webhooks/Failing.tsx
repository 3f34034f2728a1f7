import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { CsvButton } from "../../ui/CsvButton";
import { Url } from "../../ui/InPieces";
import { List, listed, type Column } from "../../ui/List";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { api, operatorSession, unwrap, useWords, type Schemas } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";
import { ROWS } from "../queries";

type Target = Schemas["FailingTarget"];

const PATH = "/api/admin/webhooks/failing";
const POLL_MS = 10_000;

interface FailingProps {
  /** Of one merchant alone. */
  readonly merchantId: string | undefined;
}

/** The receivers that deliveries fail at now, the one that has failed for longest first. */
export function Failing({ merchantId }: FailingProps) {
  const { t } = useWords();
  const search = useListSearch([], "failingPage");
  const of = merchantId === undefined ? {} : { merchantId };
  const query = useQuery({
    queryKey: ["delivery", "failing", merchantId, search.page],
    placeholderData: keepPreviousData,
    refetchInterval: POLL_MS,
    queryFn: async ({ signal }) => {
      const params = { query: { limit: ROWS, page: search.page, ...of } };
      const answer = await unwrap(api.GET(PATH, { params, signal }));
      return listed(answer.endpoints, answer);
    },
  });
  const columns: readonly Column<Target>[] = [
    { id: "since", title: t("chains.failingSince"), cell: (one) => <When at={one.failingSince} /> },
    {
      id: "merchant",
      title: t("record.merchant"),
      cell: (one) => (
        <>
          <MerchantLink of={one} /> · {one.projectName}
        </>
      ),
    },
    {
      id: "url",
      title: t("common:webhooks.url"),
      isWide: true,
      cell: (one) => (one.url === null ? <None /> : <Url value={one.url} />),
    },
    {
      id: "answer",
      title: t("common:webhooks.answer"),
      cell: (one) => one.lastAttempt?.statusCode ?? one.lastAttempt?.error ?? <None />,
    },
    { id: "next", title: t("common:webhooks.next"), cell: (one) => <When at={one.nextAttemptAt} /> },
    {
      id: "failing",
      title: t("webhooks.waiting"),
      atEnd: true,
      cell: (one) => <span className="number">{one.failing}</span>,
    },
    { id: "deliveries", title: "", atEnd: true, cell: (one) => <Deliveries of={one} /> },
  ];
  return (
    <Section
      title={t("webhooks.failing")}
      flush
      actions={<CsvButton path={PATH} query={of} name="failing-webhooks" session={operatorSession} />}
    >
      <List
        label={t("webhooks.failing")}
        columns={columns}
        query={query}
        rowKey={(one) => `${one.projectId} ${one.endpointId ?? one.webhookId ?? one.url ?? ""}`}
        onPage={search.goTo}
        empty={t("webhooks.allWell")}
      />
    </Section>
  );
}

/** Leads to what fails there, in the list below. */
function Deliveries({ of: { projectId, endpointId } }: { readonly of: Target }) {
  const { t } = useWords();
  const search = { status: "failing", projectId, ...(endpointId === null ? {} : { endpointId }) };
  return (
    <Link to="/webhooks" search={search}>
      {t("webhooks.failingFiltered")}
    </Link>
  );
}
