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
          <span class="soft"> · {date(point.created_at)}{point.commit && ` · ${point.commit.slice(0, 7)}`}</span>
        </p>
      )}
    </div>
  );
}

function dataOf(trend: Trend): uPlot.AlignedData {
  return [
    trend.points.map((_, at) => at),
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
    padding: [6, 10, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false, range: (_, low, high) => [low - 0.3, high + 0.3] }, y: { range: () => rangeOf(trend) } },
    axes: [
      { ...axis, size: 24, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, splits) => splits.map(label) },
      { ...axis, size: 52, values: (_, splits) => splits.map((value) => quantity(value, trend.unit)) },
    ],
    series: [
      {},
      { stroke: accent, width: 1.5, points: { show: true, size: 5, fill: accent, stroke: accent } },
    ],
    hooks: {
      drawClear: [(chart) => drawBand(chart, trend, band ?? "", soft ?? "")],
      drawSeries: [(chart, at) => { if (at === 1) drawIntervals(chart, trend, accent ?? ""); }],
      setCursor: [(chart) => onPoint(chart.cursor.idx ?? null)],
    },
  };
}

/** Room for the band too; what cannot be negative does not start below 0. */
function rangeOf(trend: Trend): [number, number] {
  const shown = trend.points.flatMap((point) => [point.low, point.mean, point.high]).concat(trend.band?.low ?? null, trend.band?.high ?? null);
  const known = shown.filter((value): value is number => value !== null);
  const least = Math.min(...known);
  const most = Math.max(...known);
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

/** A line from low to high at each run. */
function drawIntervals(chart: uPlot, trend: Trend, stroke: string): void {
  const { ctx } = chart;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  trend.points.forEach(({ low, high }, at) => {
    if (low === null || high === null) return;
    const x = chart.valToPos(at, "x", true);
    ctx.moveTo(x, chart.valToPos(low, "y", true));
    ctx.lineTo(x, chart.valToPos(high, "y", true));
  });
  ctx.stroke();
  ctx.restore();
}
