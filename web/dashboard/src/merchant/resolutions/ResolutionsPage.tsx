import { Button } from "@mantine/core";
import { keepPreviousData, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Meaning } from "../../ui/Meaning";
import { api, unwrap } from "../api";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Feedback";
import { List, listed, type Column, type Listed } from "../../ui/List";
import { Page, Section } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { Text } from "../../ui/Text";
import { When } from "../../ui/When";
import { once } from "../once";
import { ProjectCsv } from "../ProjectCsv";
import { usePermitted, useProjectId } from "../project";
import { ROWS, type Schemas } from "../queries";

type Resolution = Schemas["ResolutionView"];

function resolutionsQuery(projectId: string, page: number) {
  return queryOptions({
    queryKey: ["project", projectId, "resolutions", page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Listed<Resolution>> => {
      const params = { path: { projectId }, query: { limit: ROWS, page } };
      const answer = await unwrap(api.GET("/api/dashboard/projects/{projectId}/resolutions", { params, signal }));
      return listed(answer.resolutions, answer);
    },
  });
}

/** Money that belongs to no order: it waits until somebody says what becomes of it. */
export function ResolutionsPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch([]);
  const query = useQuery(resolutionsQuery(projectId, search.page));
  const columns: readonly Column<Resolution>[] = [
    { id: "when", title: t("resolutions.came"), cell: (one) => <When at={one.minedAt} /> },
    { id: "why", title: t("resolutions.why"), cell: (one) => <Meaning of="held" code={one.reason} /> },
    {
      id: "whose",
      title: t("resolutions.whose"),
      cell: (one) => one.orderId ?? one.paymentId ?? one.externalId ?? "–",
    },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "tx", title: t("statement.tx"), cell: (one) => <Address value={one.txHash} /> },
    {
      id: "amount",
      title: t("wallet.held"),
      atEnd: true,
      cell: (one) => <Amount value={one.heldAmount} token={one.token} />,
    },
    { id: "acts", title: "", atEnd: true, cell: (one) => <Acts projectId={projectId} resolution={one} /> },
  ];
  return (
    <Page
      title={t("resolutions.title")}
      lead={t("resolutions.lead")}
      actions={<ProjectCsv list="resolutions" query={search.filters} />}
    >
      <Section flush>
        <List
          label={t("resolutions.title")}
          columns={columns}
          query={query}
          rowKey={(one) => one.depositId}
          onPage={search.goTo}
          empty={<Empty title={t("resolutions.none")} />}
        />
      </Section>
    </Page>
  );
}

type Choice = "accept" | "release" | "refund";

interface ActsProps {
  readonly projectId: string;
  readonly resolution: Resolution;
}

function Acts({ projectId, resolution }: ActsProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [choice, setChoice] = useState<Choice | null>(null);
  const [toAddress, setToAddress] = useState("");
  const mayResolve = usePermitted("payments");
  const mayRefund = usePermitted("refunds");

  async function resolve(): Promise<void> {
    const params = { path: { projectId, depositId: resolution.depositId } };
    const base = "/api/dashboard/projects/{projectId}/resolutions/{depositId}";
    if (choice === "accept") await unwrap(api.POST(`${base}/accept`, { params }));
    else if (choice === "release") await unwrap(api.POST(`${base}/release`, { params }));
    else {
      const body = { toAddress: toAddress.trim() };
      await once(`resolution ${projectId} ${resolution.depositId}`, (idempotencyKey) =>
        unwrap(api.POST(`${base}/refund`, { params, body: { ...body, idempotencyKey } })),
      );
    }
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  }

  const offered: readonly Choice[] = [
    ...(mayResolve && resolution.canAccept ? (["accept"] as const) : []),
    ...(mayResolve ? (["release"] as const) : []),
    ...(mayRefund ? (["refund"] as const) : []),
  ];
  return (
    <span className="row end">
      {offered.map((one) => (
        <Button
          key={one}
          variant="default"
          size="compact-sm"
          onClick={() => {
            setChoice(one);
          }}
        >
          {t(`resolutions.${one}.act`)}
        </Button>
      ))}
      {choice !== null && (
        <Confirm
          title={t(`resolutions.${choice}.title`)}
          act={t(`resolutions.${choice}.act`)}
          isDangerous={choice === "refund"}
          onConfirm={resolve}
          onClose={() => {
            setChoice(null);
          }}
        >
          <p>
            <Amount value={resolution.heldAmount} token={resolution.token} /> · <ChainName of={resolution.chain} />
          </p>
          <p>{t(`resolutions.${choice}.words`)}</p>
          {choice === "refund" && (
            <Text
              label={t("refund.to")}
              description={t("refund.toWords")}
              required
              autoComplete="off"
              spellCheck={false}
              value={toAddress}
              onText={setToAddress}
            />
          )}
        </Confirm>
      )}
    </span>
  );
}
