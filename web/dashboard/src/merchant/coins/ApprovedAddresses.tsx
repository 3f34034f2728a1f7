import { Button, Select } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Confirm } from "../../ui/Confirm";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Empty } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Text } from "../../ui/Text";
import { When } from "../../ui/When";
import { api, unwrap } from "../api";
import { CodeInput } from "../CodeInput";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { usePermitted } from "../project";
import type { Project } from "../queries";

import { approvedQuery, coinsQuery, useCoinChains, type Approved } from "./queries";

/** Where auto-payouts may go: approved in person, with a code. */
export function ApprovedAddresses({ project }: { readonly project: Project }) {
  const { t } = useTranslation();
  const query = useQuery(approvedQuery(project));
  const mayApprove = usePermitted("approvals");
  const [isAdding, setAdding] = useState(false);
  const add = mayApprove && (
    <Button
      variant="default"
      onClick={() => {
        setAdding(true);
      }}
    >
      {t("approved.new")}
    </Button>
  );
  return (
    <Section title={t("approved.title")} flush actions={add}>
      <QueryView query={query}>
        {(addresses) =>
          addresses.length === 0 ? (
            <Empty title={t("approved.none")}>
              <p>{t("approved.noneWords")}</p>
            </Empty>
          ) : (
            <Plain
              label={t("approved.title")}
              rows={addresses}
              rowKey={(one) => one.approvalId}
              columns={[
                {
                  id: "label",
                  title: t("projects.name"),
                  cell: (one) => <b>{one.label === "" ? <None /> : one.label}</b>,
                },
                { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
                {
                  id: "address",
                  title: t("payment.address"),
                  isWide: true,
                  cell: (one) => <Address value={one.address} whole />,
                },
                { id: "at", title: t("approved.at"), cell: (one) => <When at={one.approvedAt} /> },
                {
                  id: "acts",
                  title: "",
                  atEnd: true,
                  cell: (one) => (mayApprove ? <TakeBack project={project} approved={one} /> : null),
                },
              ]}
            />
          )
        }
      </QueryView>
      {isAdding && (
        <Approve
          project={project}
          onClose={() => {
            setAdding(false);
          }}
        />
      )}
    </Section>
  );
}

function Approve({ project, onClose }: { readonly project: Project; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const chains = useCoinChains();
  const [chain, setChain] = useState<string | null>(null);
  const [address, setAddress] = useState("");
  const [label, setLabel] = useState("");
  const [code, setCode] = useState("");

  async function approve(): Promise<void> {
    if (chain === null) return;
    const body = { chain, address: address.trim(), label: label.trim(), mode: project.mode, totpCode: code.trim() };
    await unwrap(api.POST("/api/dashboard/approved-addresses", { body }));
    void client.invalidateQueries(approvedQuery(project));
  }

  return (
    <Confirm
      title={t("approved.new")}
      act={t("approved.act")}
      isBlocked={chain === null || address.trim() === "" || code.trim() === ""}
      onConfirm={approve}
      onClose={onClose}
    >
      <NeedsSecondFactor always />
      <p>{t("approved.words")}</p>
      <Select
        label={t("payments.chain")}
        required
        searchable
        openOnFocus={false}
        value={chain}
        data={chains}
        onChange={setChain}
      />
      <Text
        label={t("payment.address")}
        required
        autoComplete="off"
        spellCheck={false}
        value={address}
        onText={setAddress}
      />
      <Text label={t("projects.name")} description={t("approved.nameWords")} value={label} onText={setLabel} />
      <CodeInput value={code} onText={setCode} />
    </Confirm>
  );
}

function TakeBack({ project, approved }: { readonly project: Project; readonly approved: Approved }) {
  const { t } = useTranslation();
  const client = useQueryClient();

  async function takeBack(): Promise<void> {
    const params = { path: { approvalId: approved.approvalId } };
    await unwrap(api.DELETE("/api/dashboard/approved-addresses/{approvalId}", { params }));
    await Promise.all([
      client.invalidateQueries(approvedQuery(project)),
      client.invalidateQueries(coinsQuery(project.projectId)),
    ]);
  }

  return (
    <ConfirmButton act={t("approved.takeBack")} title={t("approved.takeBackTitle")} onConfirm={takeBack}>
      <p>
        {approved.label} · <ChainName of={approved.chain} />
      </p>
      <Address value={approved.address} whole />
      <p>{t("approved.takeBackWords")}</p>
    </ConfirmButton>
  );
}
