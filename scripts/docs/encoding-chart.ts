import { ENCODERS } from "../bench/encoder-curves.ts";
import { encodingMeans } from "./encoding-curves.ts";

/** In pixels. */
const SIZE = { width: 760, height: 420, left: 60, right: 150, top: 30, bottom: 50 };
/** Legible on a light and on a dark page. */
const COLORS = { h264: "#3b82f6", hevc: "#16a34a", av1: "#d97706" };
const OTHER = "#dc2626";
const INK = "#6b7280";

/** An SVG of the bits at equal VMAF (vertical) and the processor time (horizontal, logarithmic), each of x264 `veryfast`. */
export function encodingChart(): string {
  const means = encodingMeans();
  const times = [0.5, 1, 2, 4, 8, 16].filter((_, index, all) =>
    means.some(({ time }) => time >= (all[index - 1] ?? 0)),
  );
  const all = means.map(({ bits }) => bits);
  const shares = [0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6].filter(
    (one) => one + 0.2 > Math.min(...all) && one - 0.2 < Math.max(...all),
  );
  const first = times[0] ?? 1;
  const last = times.at(-1) ?? 1;
  const least = shares[0] ?? 0;
  const most = shares.at(-1) ?? 1;
  const inner = { width: SIZE.width - SIZE.left - SIZE.right, height: SIZE.height - SIZE.top - SIZE.bottom };
  const x = (time: number) => round(SIZE.left + (Math.log(time / first) / Math.log(last / first)) * inner.width);
  const y = (bits: number) => round(SIZE.top + ((most - bits) / (most - least)) * inner.height);
  const right = SIZE.left + inner.width;
  const bottom = SIZE.top + inner.height;
  const text = (left: number, top: number, content: string, more = "") =>
    `<text x="${left}" y="${top}" fill="${INK}" ${more}>${content}</text>`;
  const line = (from: [number, number], to: [number, number]) =>
    `<path d="M${from.join(" ")}L${to.join(" ")}" stroke="${INK}" stroke-opacity=".25"/>`;
  const grid = [
    ...times.flatMap((one) => [
      line([x(one), SIZE.top], [x(one), bottom]),
      text(x(one), bottom + 18, `${one} ×`, 'text-anchor="middle"'),
    ]),
    ...shares.flatMap((one) => [
      line([SIZE.left, y(one)], [right, y(one)]),
      text(SIZE.left - 8, y(one) + 4, `${Math.round(one * 100)} %`, 'text-anchor="end"'),
    ]),
    text(SIZE.left + inner.width / 2, SIZE.height - 10, "Processor time, x264 veryfast = 1", 'text-anchor="middle"'),
    text(SIZE.left, 16, "Bits at equal VMAF, x264 veryfast = 100 %"),
  ];
  const curves = (Object.keys(COLORS) as (keyof typeof COLORS)[]).flatMap((codec) => {
    const name = ENCODERS[codec];
    const color = COLORS[codec];
    const own = means.filter((one) => one.name.startsWith(`${name} `));
    const points = own.map(({ time, bits }) => `${x(time)},${y(bits)}`);
    const end = own.at(-1);
    return [
      `<polyline points="${points.join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>`,
      // Alternately above and below, because points are close to each other.
      ...own.flatMap((one, index) => [
        `<circle cx="${x(one.time)}" cy="${y(one.bits)}" r="${one.isChosen ? 6 : 3.5}" fill="${color}"/>`,
        text(
          x(one.time) + (index % 2 ? -8 : 4),
          y(one.bits) + (index % 2 ? 19 : -9),
          one.name.slice(name.length + 1),
          'font-size="11"',
        ),
      ]),
      ...(end
        ? [`<text x="${right + 12}" y="${y(end.bits) + 4}" fill="${color}" font-weight="bold">${name}</text>`]
        : []),
    ];
  });
  const others = means
    .filter(({ name }) => !Object.values(ENCODERS).some((known) => name.startsWith(`${known} `)))
    .flatMap((one) => [
      `<path d="M${x(one.time) - 5} ${y(one.bits) - 5}l10 10m0-10l-10 10" stroke="${OTHER}" stroke-width="2"/>`,
      `<text x="${x(one.time) + 9}" y="${y(one.bits) + 4}" fill="${OTHER}" font-size="11">${one.name}</text>`,
    ]);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" font-family="sans-serif" font-size="12">`,
    ...[
      "<title>Bits at equal VMAF and processor time of each encoder and preset</title>",
      ...grid,
      ...curves,
      ...others,
    ],
    "</svg>\n",
  ].join("\n");
}

const round = (value: number) => Math.round(value * 10) / 10;
