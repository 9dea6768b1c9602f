import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { pacer } from "#lib/base";
import { excerptOf, type Hit, hitsIn, MATCH_KINDS, type MatchKind, queryWords, readText } from "#lib/search";
import { readAssets } from "../assets/queries.ts";
import { type Candidate, candidatesFor } from "./candidates.ts";

export type Match = { kind: MatchKind; text: string; start_ms?: number };
export type Found = { asset_id: number; title: string; matches: Match[] };

/** Assets whose texts are read at once. */
const GROUP = 10;
/** Sections of one asset that are compared. */
const SECTIONS_OF_ASSET = 4;
/** Sections that a search compares, for each result that it may return. */
const SECTIONS_PER_RESULT = 6;
const MAX_MATCHES = 5;

type Ranked = Found & { rank: number };

/**
 * Searches the texts of a tenant's assets. All words must be in an asset, each as the beginning of a word. Best first; the
 * time does not depend on the number of assets. `language` restricts captions to a language.
 */
export async function find(
  app: App,
  { tenantId, q, limit, language }: { tenantId: number; q: string; limit: number; language: string | undefined },
): Promise<Found[]> {
  const words = queryWords(q);
  if (words.length === 0) return [];
  const candidates = await candidatesFor(app.db, { tenantId, words, language });
  const found: Ranked[] = [];
  const pace = pacer();
  let compared = 0;
  for (let from = 0; from < candidates.length && found.length < limit; from += GROUP) {
    const group = candidates.slice(from, from + GROUP);
    const texts = await textsOf(app, group);
    const titles = await readAssets(
      app,
      group.map(({ assetId }) => assetId),
    );
    for (const candidate of group) {
      await pace();
      const asset = titles.get(candidate.assetId);
      if (asset?.tenantId !== tenantId) continue;
      const hits = sectionsOf(candidate).flatMap((id) => {
        const data = texts.get(id);
        compared++;
        return data ? hitsIn(readText(data), words) : [];
      });
      const isComplete = new Set(hits.flatMap((hit) => [...hit.words])).size === words.length;
      if (!isComplete) continue;
      found.push({
        asset_id: asset.id,
        title: asset.title,
        matches: matchesOf(hits, words),
        rank: rankOf(candidate, hits, words),
      });
    }
    if (compared >= limit * SECTIONS_PER_RESULT) break;
  }
  return found
    .sort((a, b) => b.rank - a.rank)
    .slice(0, limit)
    .map(({ rank: _, ...one }) => one);
}

const sectionsOf = ({ sections }: Candidate) => [...sections].slice(0, SECTIONS_OF_ASSET);

async function textsOf({ db }: App, candidates: readonly Candidate[]): Promise<Map<number, Uint8Array>> {
  const ids = candidates.flatMap(sectionsOf);
  const rows = await db.all<{ id: number; data: ArrayBuffer | Uint8Array }>(
    sql`select section_id as id, data from search_texts where section_id in (select value from json_each(${JSON.stringify(ids)}))`,
  );
  return new Map(rows.map(({ id, data }) => [id, data instanceof Uint8Array ? data : new Uint8Array(data)]));
}

const best = (hits: readonly Hit[]) => Math.max(0, ...hits.slice(0, 1000).map(({ words }) => words.size));

/** The lists that the asset is in, then how many words one line has, whole words, and how many lines there are. */
function rankOf({ score }: Candidate, hits: readonly Hit[], words: readonly string[]): number {
  const together = best(hits) / words.length;
  const whole = new Set(hits.filter((hit) => hit.whole > 0).flatMap((hit) => [...hit.words])).size / words.length;
  return score + 2 * together + whole + Math.min(hits.length, 10) / 20;
}

/** The best lines, in the order of their kinds and times. */
function matchesOf(hits: readonly Hit[], words: readonly string[]): Match[] {
  const order = ({ line }: Hit) => [MATCH_KINDS.indexOf(line.kind), line.startMs ?? 0] as const;
  const compare = (a: Hit, b: Hit) => order(a)[0] - order(b)[0] || order(a)[1] - order(b)[1];
  return [...hits]
    .sort((a, b) => b.words.size - a.words.size || b.whole - a.whole || compare(a, b))
    .slice(0, MAX_MATCHES)
    .sort(compare)
    .map(({ line: { kind, text, startMs } }) => ({
      kind,
      text: kind === "title" ? text : excerptOf(text, words),
      ...(startMs !== null && { start_ms: startMs }),
    }));
}
