import { useProject } from "./project";
import { Mode } from "./projects/Mode";

/** Whether an act moves real money, named in the header, and where one is asked for the last time. */
export function InMode() {
  const project = useProject();
  return project === null ? null : <Mode mode={project.mode} />;
}
