import { CsvButton } from "../ui/CsvButton";

import { merchantSession } from "./api";
import { useProjectId } from "./project";

interface ProjectCsvProps {
  /** Where the list is, below the project's part of the API. */
  readonly list: string;
  /** What the list shows just now. */
  readonly query: Readonly<Record<string, string | undefined>>;
}

/** Saves all that a list of the project shows, of every page, as a file that is called like the list. */
export function ProjectCsv({ list, query }: ProjectCsvProps) {
  const path = `/api/dashboard/projects/${useProjectId()}/${list}`;
  return <CsvButton path={path} query={query} name={list.replace(/^.*\//, "")} session={merchantSession} />;
}
