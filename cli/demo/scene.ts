import { pacer } from "#lib/base";
import { png } from "./png.ts";

/** Pixels of the video; layers that move are twice as wide and repeat after its width. */
export const WIDTH = 1280;
export const HEIGHT = 720;
const SUN_SIZE = 520;

type Color = readonly [red: number, green: number, blue: number];
/** `x` and `y`: ffmpeg's expressions of the time `t`, in pixels, for the upper left corner. */
export type Layer = { name: string; image: Buffer; x: string; y: string };

type Hills = {
  name: string;
  /** Pixels from the top to the mean height. */
  base: number;
  /** Amplitude in pixels, waves in the width, and phase of each sine. */
  waves: readonly (readonly [number, number, number])[];
  /** At the ridge and 200 pixels below it. */
  colors: readonly [Color, Color];
  /** Multiples of 15: whole pixels in one or two frames, so that the motion is even. */
  pixelsPerSecond: number;
  /** Number of trees in the width, and the height of the largest. */
  trees?: { count: number; height: number };
};

const SKY: readonly (readonly [at: number, color: Color])[] = [
  [0, [18, 22, 58]],
  [0.3, [62, 44, 104]],
  [0.5, [168, 78, 118]],
  [0.66, [244, 142, 98]],
  [1, [255, 214, 150]],
];

const HILLS: readonly Hills[] = [
  {
    name: "mountains",
    base: 470,
    pixelsPerSecond: 15,
    waves: [
      [46, 2, 0.4],
      [26, 5, 2.1],
      [9, 13, 0.9],
    ],
    colors: [
      [128, 78, 122],
      [196, 120, 118],
    ],
  },
  {
    name: "hills",
    base: 548,
    pixelsPerSecond: 30,
    waves: [
      [40, 1, 1.7],
      [22, 4, 0.3],
      [6, 11, 2.4],
    ],
    colors: [
      [74, 52, 98],
      [122, 82, 112],
    ],
  },
  {
    name: "forest",
    base: 640,
    pixelsPerSecond: 60,
    waves: [
      [24, 1, 4.1],
      [14, 3, 1.2],
    ],
    colors: [
      [30, 26, 58],
      [18, 16, 38],
    ],
    trees: { count: 34, height: 120 },
  },
];

/** The layers of an evening landscape, from the back to the front, as PNG files of BT.709 colors. */
export async function sceneLayers(): Promise<Layer[]> {
  const layers: Layer[] = [
    { name: "sky", image: await png(await sky(), WIDTH, HEIGHT), x: "0", y: "0" },
    { name: "sun", image: await png(await sun(), SUN_SIZE, SUN_SIZE), x: "640-t*2", y: "170+40*sin(t/9)" },
  ];
  for (const each of HILLS) {
    const image = await png(await hills(each), WIDTH * 2, HEIGHT);
    layers.push({ name: each.name, image, x: `-mod(t*${each.pixelsPerSecond},${WIDTH})`, y: "0" });
  }
  return layers;
}

/** The same numbers from 0 to 1 for the same seed: Math.random would make every clip different. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const mixed = (from: Color, to: Color, part: number): Color =>
  [0, 1, 2].map((at) => (from[at] as number) + ((to[at] as number) - (from[at] as number)) * part) as unknown as Color;

function skyColor(at: number): Color {
  const next = SKY.findIndex(([end]) => end >= at);
  const [to, toColor] = SKY[Math.max(1, next)] as (typeof SKY)[number];
  const [from, fromColor] = SKY[Math.max(1, next) - 1] as (typeof SKY)[number];
  return mixed(fromColor, toColor, (at - from) / (to - from));
}

async function sky(): Promise<Buffer> {
  const pixels = Buffer.alloc(WIDTH * HEIGHT * 4);
  const random = randomNumbers(1);
  const pace = pacer();
  for (let y = 0; y < HEIGHT; y++, await pace()) {
    const color = skyColor(y / (HEIGHT - 1));
    // A rounding at random, because a gradient of 8 bits would show bands.
    for (let x = 0; x < WIDTH; x++) put(pixels, y * WIDTH + x, color, 255, random());
  }
  for (let star = 0; star < 140; star++) {
    const at = Math.floor(random() * 260) * WIDTH + Math.floor(random() * (WIDTH - 1));
    const color = mixed(skyColor(at / WIDTH / HEIGHT), [255, 246, 230], 0.3 + random() * 0.6);
    for (const pixel of [at, at + 1, at + WIDTH, at + WIDTH + 1]) put(pixels, pixel, color, 255, 0);
  }
  return pixels;
}

/** A disk in its glow. */
async function sun(): Promise<Buffer> {
  const pixels = Buffer.alloc(SUN_SIZE * SUN_SIZE * 4);
  const random = randomNumbers(2);
  const pace = pacer();
  const center = SUN_SIZE / 2;
  const radius = 52;
  for (let y = 0; y < SUN_SIZE; y++, await pace())
    for (let x = 0; x < SUN_SIZE; x++) {
      const distance = Math.hypot(x - center, y - center);
      const fading = Math.max(0, 1 - distance / center);
      const alpha = Math.max(Math.min(1, radius + 0.5 - distance), 0.62 * fading ** 2.4);
      put(pixels, y * SUN_SIZE + x, mixed([255, 176, 110], [255, 244, 214], alpha), alpha * 254, random());
    }
  return pixels;
}

/** What is below the ridge is opaque. */
async function hills({ base, waves, colors, trees }: Hills): Promise<Buffer> {
  const pixels = Buffer.alloc(WIDTH * 2 * HEIGHT * 4);
  const wave = (x: number) =>
    waves.reduce((sum, [size, count, phase]) => sum + size * Math.sin((2 * Math.PI * count * x) / WIDTH + phase), 0);
  const ridge = Float64Array.from({ length: WIDTH }, (_, x) => base - wave(x));
  const tops = trees ? planted(ridge, trees) : ridge;
  const random = randomNumbers(base);
  const pace = pacer();
  for (let y = 0; y < HEIGHT; y++, await pace())
    for (let x = 0; x < WIDTH; x++) {
      const below = y + 1 - (tops[x] as number);
      if (below <= 0) continue;
      const color = mixed(...colors, Math.min(1, Math.max(0, y - (ridge[x] as number)) / 200));
      const noise = random();
      for (const column of [x, x + WIDTH]) put(pixels, y * WIDTH * 2 + column, color, Math.min(1, below) * 255, noise);
    }
  return pixels;
}

/** Base, top and half width of the three tiers of a conifer, relative to its size. */
const TIERS = [
  [0.02, 0.62, 1],
  [0.34, 0.82, 0.72],
  [0.6, 1, 0.46],
] as const;

/** The ridge with trees on it. */
function planted(ridge: Float64Array, { count, height }: NonNullable<Hills["trees"]>): Float64Array {
  const tops = Float64Array.from(ridge);
  const random = randomNumbers(count);
  for (let tree = 0; tree < count; tree++) {
    const trunk = Math.floor(((tree + random() * 0.8) * WIDTH) / count);
    const size = height * (0.45 + random() * 0.55);
    const half = size * 0.24;
    for (let dx = -Math.floor(half); dx <= half; dx++) {
      const away = Math.abs(dx) / half;
      const tiers = TIERS.map(([low, high, width]) => (away < width ? low + (high - low) * (1 - away / width) : 0));
      const x = (trunk + dx + WIDTH) % WIDTH;
      tops[x] = Math.min(tops[x] as number, (ridge[trunk] as number) - size * Math.max(...tiers));
    }
  }
  return tops;
}

/** `rounding`: from 0 to 1, added before the fraction is dropped. */
function put(pixels: Buffer, pixel: number, color: Color, alpha: number, rounding: number): void {
  for (let at = 0; at < 3; at++) pixels[pixel * 4 + at] = Math.min(255, Math.floor((color[at] as number) + rounding));
  pixels[pixel * 4 + 3] = Math.round(alpha);
}
