import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { usePathPart } from "../../ui/address";
import { Copyable } from "../../ui/Copyable";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { useWords } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";

import type { Kind, Owned } from "./kinds";
import { StoryView } from "./Story";

/** One of a kind: what it is, whose, and what came of it. */
export function RecordPage<Row extends Owned>({ kind }: { readonly kind: Kind<Row> }) {
  const id = usePathPart("id");
  const { t } = useWords();
  const query = useQuery({
    queryKey: [kind.name, "one", id],
    queryFn: ({ signal }) => kind.read(id, signal),
  });
  const title = t(`one.${kind.name}`);
  return (
    <QueryPage title={title} query={query}>
      {({ row, story }) => (
        <Page
          title={title}
          tab={`${title} ${id}`}
          lead={
            <span className="row">
              {kind.statusOf !== undefined && <Status value={kind.statusOf(row)} />}
              <Copyable text={id}>
                <code>{id}</code>
              </Copyable>
              <When at={row.createdAt} />
            </span>
          }
        >
          <Section title={t("common:payment.details")}>
            <Facts
              facts={[
                ...kind.facts(row, (word) => t(`record.${word}`)),
                [t("common:payments.created"), <Moment key="created" at={row.createdAt} />],
              ]}
            />
          </Section>
          <Section title={t("record.whose")}>
            <Facts
              facts={[
                [t("record.merchant"), <MerchantLink key="merchant" of={row} />],
                [
                  t("record.project"),
                  row.projectId === null ? null : (
                    <Link key="project" to={`/${kind.name}`} search={{ project: row.projectId }}>
                      {row.projectName ?? row.projectId}
                    </Link>
                  ),
                ],
                [t("common:mode.title"), t(`common:mode.${row.mode}`)],
              ]}
            />
          </Section>
          {story !== undefined && <StoryView story={story} />}
        </Page>
      )}
    </QueryPage>
  );
}
