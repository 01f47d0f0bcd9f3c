import { Empty } from "../components/states";
import type { PageProps } from "../pages";
import "./label.css";

export function LabelPage({ params }: PageProps) {
  return <Empty title={`The page of ${params.run} is being built.`} />;
}
