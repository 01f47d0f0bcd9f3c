import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/pages.css";
import { go, href, place } from "./address";
import { Failure } from "./components/states";
import { Shell } from "./shell";
import { follow, index, source } from "./source";

/** Where a page without an address starts: at the comparison or the run that it was made for. */
function start(): void {
  const { compare, run } = index.value ?? {};
  if (place.value.path.length > 0) return;
  if (compare) go(href(["compare", compare.baseline, compare.candidate]), true);
  else if (run) go(href(["run", run]), true);
}

async function open(root: HTMLElement): Promise<void> {
  try {
    index.value = await source.index();
  } catch (error) {
    render(<main><Failure error={error instanceof Error ? error : String(error)} /></main>, root);
    return;
  }
  start();
  render(<Shell />, root);
  void follow();
}

const root = document.getElementById("app");
if (root) void open(root);
