// Every page of the viewer, by its address. A page is a component that gets the parts of its address as `params`.
import type { ComponentType } from "preact";
import { CasePage } from "./case/page";
import { LabelPage } from "./label/page";
import { CasesView } from "./pages/cases";
import { CompareView } from "./pages/compare";
import { MetricsView } from "./pages/metrics";
import { NotFound } from "./pages/not_found";
import { RunView } from "./pages/run";
import { RunsView } from "./pages/runs";

export interface PageProps {
  params: Record<string, string>;
}

export interface Page {
  /** "run/:run/cases": parts that start with ':' are handed to the page by their name. */
  address: string;
  title: (params: Record<string, string>) => string;
  show: ComponentType<PageProps>;
}

export const pages: Page[] = [
  { address: "runs", title: () => "Runs", show: RunsView },
  { address: "run/:run", title: ({ run }) => `Run ${run}`, show: RunView },
  { address: "run/:run/cases", title: () => "Cases", show: CasesView },
  { address: "compare/:baseline/:candidate", title: () => "Compare", show: CompareView },
  { address: "metrics", title: () => "Metrics", show: MetricsView },
  { address: "run/:run/case/:record", title: ({ record }) => `Case ${record}`, show: CasePage },
  { address: "run/:run/label", title: () => "Label", show: LabelPage },
];

export function pageAt(path: readonly string[]): { page: Page; params: Record<string, string> } {
  for (const page of pages) {
    const params = match(page.address, path);
    if (params) return { page, params };
  }
  return { page: { address: "", title: () => "Not found", show: NotFound }, params: {} };
}

function match(address: string, path: readonly string[]): Record<string, string> | null {
  const parts = address.split("/").filter(Boolean);
  if (parts.length !== path.length) return null;
  const params: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    const received = path[at] ?? "";
    if (part.startsWith(":")) params[part.slice(1)] = received;
    else if (part !== received) return null;
  }
  return params;
}
