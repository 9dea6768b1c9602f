import { useEffect, useRef, useState } from "preact/hooks";
import { BASE } from "#web/console/base.ts";
import { duration } from "#web/console/format.ts";
import type { AssetImages } from "#web/console/types.ts";

/** A storyboard, as `storyboard.json` has it (docs/api.md). */
type Storyboard = {
  url: string;
  tile_width: number;
  tile_height: number;
  tiles: { start: number; x: number; y: number; url?: string }[];
};

/** Between two frames while a poster has the focus. */
const FRAME_MS = 700;
/** Until a preview begins: a pointer that only passes loads nothing. */
const DELAY_MS = 150;

type Props = {
  images: AssetImages | undefined;
  /** Seconds; null: not shown. */
  length: number | null;
  /** Whether the keyboard is on this video: its frames are shown one after the other. */
  isFocused: boolean;
};

/** The poster; under the pointer, or with the focus, the frames of the storyboard. */
export function Poster({ images, length, isFocused }: Props) {
  const [board, setBoard] = useState<Storyboard | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const isActive = useRef(false);
  const url = images?.storyboard_url ?? null;
  const begin = () => {
    if (url === null || isActive.current) return;
    isActive.current = true;
    clearTimeout(timer.current);
    timer.current = setTimeout(async () => {
      const loaded = await loadStoryboard(url);
      if (isActive.current) setBoard(loaded);
    }, DELAY_MS);
  };
  const end = () => {
    isActive.current = false;
    clearTimeout(timer.current);
    setAt(null);
    // Its image is freed: a list has many.
    setBoard(null);
  };
  useEffect(() => end, []);
  useEffect(() => {
    if (!isFocused) return;
    begin();
    return end;
  }, [isFocused, url]);
  useEffect(() => {
    if (!isFocused || !board || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const step = Math.max(1, Math.floor(board.tiles.length / 20));
    let tile = 0;
    const frames = setInterval(() => {
      tile = (tile + step) % board.tiles.length;
      setAt(tile / board.tiles.length);
    }, FRAME_MS);
    return () => clearInterval(frames);
  }, [isFocused, board]);
  return (
    <span
      class="poster"
      onPointerMove={(event) => {
        if (event.pointerType === "touch") return;
        begin();
        const { left, width } = event.currentTarget.getBoundingClientRect();
        setAt(Math.min(0.999, Math.max(0, (event.clientX - left) / width)));
      }}
      onPointerLeave={end}
    >
      {images?.thumbnail_url && <Still url={images.thumbnail_url} />}
      {board && at !== null && <Frame board={board} at={at} />}
      {length !== null && <span class="length">{duration(length)}</span>}
    </span>
  );
}

/** Pixels: twice the width of most cards. */
const STILL_WIDTH = 480;

/** The poster in the size of a card, which the server renders once; where it cannot now, the whole one. */
function Still({ url }: { url: string }) {
  const [failed, setFailed] = useState<string | null>(null);
  const small = new URL(url);
  small.pathname = small.pathname.replace(/\.jpg$/, ".webp");
  small.searchParams.set("width", String(STILL_WIDTH));
  return <img src={failed === url ? url : small.href} alt="" decoding="async" onError={() => setFailed(url)} />;
}

/** One tile of a storyboard, as large as the poster. `at`: 0 to 1. */
function Frame({ board, at }: { board: Storyboard; at: number }) {
  const { tiles, tile_width, tile_height } = board;
  const tile = tiles[Math.floor(at * tiles.length)];
  const element = useRef<HTMLSpanElement>(null);
  const [scale, setScale] = useState(0);
  useEffect(() => {
    const { clientWidth = 0, clientHeight = 0 } = element.current?.parentElement ?? {};
    setScale(Math.max(clientWidth / tile_width, clientHeight / tile_height));
  }, [tile_width, tile_height]);
  if (!tile) return null;
  return (
    <>
      <span class="frame-view" ref={element}>
        <img
          src={tile.url ?? board.url}
          alt=""
          class="frame-sheet"
          style={{ transform: `scale(${scale}) translate(${-tile.x}px, ${-tile.y}px)` }}
        />
      </span>
      <span class="frame-position" style={{ width: `${at * 100}%` }} />
    </>
  );
}

/** Null when there is none, or none that is valid: the preview is a convenience. */
async function loadStoryboard(url: string): Promise<Storyboard | null> {
  try {
    const { pathname, search } = new URL(url);
    const path = pathname.slice(pathname.indexOf("/media/")).replace(/storyboard\.vtt$/, "storyboard.json");
    const response = await fetch(`${BASE}${path}${search}`);
    if (!response.ok) return null;
    const board = (await response.json()) as Storyboard;
    return board.tiles.length > 0 && board.tile_width > 0 && board.tile_height > 0 ? board : null;
  } catch {
    return null;
  }
}
