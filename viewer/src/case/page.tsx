import { Empty } from "../components/states";
import type { PageProps } from "../pages";
import "./case.css";

export function CasePage({ params }: PageProps) {
  return <Empty title={`The page of ${params.run} is being built.`} />;
}
