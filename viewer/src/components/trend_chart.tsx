// One metric over the runs of a suite: means with their intervals, and the band in which noise alone moves them.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { go, href } from "../address";
import { date, quantity } from "../figures";
import { colorOf, colorsChanged } from "../theme";
import type { Trend } from "../types";

const HEIGHT = 150;

export function TrendChart({ trend, width }: { trend: Trend; width: number }) {
  const frame = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const version = colorsChanged.value;
  useEffect(() => {
    if (!frame.current) return undefined;
    const chart = new uPlot(optionsOf(trend, width, setAt), dataOf(trend), frame.current);
    const open = () => {
      const point = chart.cursor.idx === null || chart.cursor.idx === undefined ? undefined : trend.points[chart.cursor.idx];
      if (point) go(href(["run", point.run]));
    };
    chart.over.addEventListener("click", open);
    return () => chart.destroy();
  }, [trend, width, version]);
  const point = trend.points[at ?? trend.points.length - 1];
  return (
    <div>
      <div ref={frame} class="trend-plot" aria-hidden="true" />
      {point && (
        <p class="trend-point small">
          <b>{quantity(point.mean, trend.unit)}</b>
          {point.low !== null && point.high !== null && (
            <span class="soft"> ({quantity(point.low, trend.unit)} to {quantity(point.high, trend.unit)})</span>
          )}
          <span class="soft"> · {point.label} · {date(point.created_at)}{point.commit && ` · ${point.commit.slice(0, 7)}`}</span>
        </p>
      )}
    </div>
  );
}

function dataOf(trend: Trend): uPlot.AlignedData {
  return [
    trend.points.map((_, at) => at),
    trend.points.map((point) => point.high),
    trend.points.map((point) => point.low),
    trend.points.map((point) => point.mean),
  ];
}

function optionsOf(trend: Trend, width: number, onPoint: (at: number | null) => void): uPlot.Options {
  const [accent, soft, line, band] = ["--accent", "--soft", "--line", "--fill"].map(colorOf);
  const axis = { stroke: soft, font: "11px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false } };
  const label = (at: number) => {
    const point = trend.points[at];
    return point ? date(point.created_at).slice(5, 10) : "";
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false, range: (_, low, high) => [low - 0.3, high + 0.3] }, y: { range: (_, low, high) => rangeOf(trend, low, high) } },
    axes: [
      { ...axis, size: 24, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, splits) => splits.map(label) },
      { ...axis, size: 52, values: (_, splits) => splits.map((value) => quantity(value, trend.unit)) },
    ],
    series: [
      {},
      { stroke: "transparent", points: { show: false } },
      { stroke: "transparent", points: { show: false } },
      { stroke: accent, width: 1.5, points: { show: true, size: 5, fill: accent, stroke: accent } },
    ],
    bands: [{ series: [1, 2], fill: translucent(accent ?? "") }],
    hooks: {
      drawClear: [(chart) => drawBand(chart, trend, band ?? "", soft ?? "")],
      setCursor: [(chart) => onPoint(chart.cursor.idx ?? null)],
    },
  };
}

/** Room for the band too; what cannot be negative does not start below 0. */
function rangeOf(trend: Trend, low: number, high: number): [number, number] {
  const least = Math.min(low, trend.band?.low ?? low);
  const most = Math.max(high, trend.band?.high ?? high);
  const room = (most - least || Math.abs(most) || 1) * 0.1;
  return [least >= 0 ? Math.max(0, least - room) : least - room, most + room];
}

function drawBand(chart: uPlot, trend: Trend, fill: string, stroke: string): void {
  if (!trend.band) return;
  const { ctx, bbox } = chart;
  const top = chart.valToPos(trend.band.high, "y", true);
  const bottom = chart.valToPos(trend.band.low, "y", true);
  const center = chart.valToPos(trend.band.center, "y", true);
  ctx.save();
  ctx.fillStyle = fill;
  ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
  ctx.strokeStyle = stroke;
  ctx.setLineDash([4, 4]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, center);
  ctx.lineTo(bbox.left + bbox.width, center);
  ctx.stroke();
  ctx.restore();
}

function translucent(color: string): string {
  return color.replace(/^rgb\((.*)\)$/, "rgba($1, 0.18)");
}
