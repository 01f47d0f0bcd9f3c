import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/pages.css";
import { Shell } from "./shell";

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<Shell />, root);
}
