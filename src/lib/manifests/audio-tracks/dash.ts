import { attribute } from "../mpd.ts";
import { type AddedAudio, type AudioChanges, type AudioLabel, hasChanges, stereoOf } from "./types.ts";

const OPEN = "<AdaptationSet";
const CLOSE = "</AdaptationSet>";
/** Far above the ids that packagers use, and apart from those of subtitles. */
const FIRST_ID = 2_000_000;

/**
 * Shows the audio tracks of a DASH manifest as they were changed, and adds others (ISO/IEC 23009-1, 5.8.4.3, 5.8.5.5). A
 * manifest with several periods is unchanged. Linear in time.
 */
export function mpdWithAudio(mpd: string, changes: AudioChanges): string {
  const end = mpd.lastIndexOf("</Period>");
  if (!hasChanges(changes) || end < 0 || mpd.indexOf("</Period>") !== end) return mpd;
  const { changed, added } = changes;
  const chosen = [...changed.filter((one) => !one.isRemoved), ...added].find(({ isDefault }) => isDefault);
  const byRendition = new Map(changed.map((one) => [one.rendition, one]));
  const pieces: string[] = [];
  let done = 0;
  let kept = 0;
  for (let from = mpd.indexOf(OPEN); from >= 0 && from < end; from = mpd.indexOf(OPEN, done)) {
    const close = mpd.indexOf(CLOSE, from);
    if (close < 0) break;
    const to = close + CLOSE.length;
    const set = mpd.slice(from, to);
    pieces.push(mpd.slice(done, from));
    done = to;
    const opening = set.slice(0, set.indexOf(">") + 1);
    if (!/ (contentType="audio"|mimeType="audio\/)/.test(opening)) {
      pieces.push(set);
      continue;
    }
    const change = byRendition.get(stereoOf(renditionOf(set)));
    if (change?.isRemoved) continue;
    const isDefault = chosen ? change === chosen : kept === 0;
    kept++;
    pieces.push(change || chosen || isDefault ? relabeled(set, opening, change, isDefault) : set);
  }
  const sets = added.map((one, index) => addedSet(one, chosen ? one === chosen : kept === 0 && index === 0));
  return [...pieces, mpd.slice(done, end), ...sets, mpd.slice(end)].join("");
}

function renditionOf(set: string): string {
  const at = set.indexOf("<Representation");
  return at < 0 ? "" : (/ id="([^"]{0,200})"/.exec(set.slice(at, at + 1000))?.[1] ?? "");
}

/** The set with another language and other roles. */
function relabeled(set: string, opening: string, change: AudioLabel | undefined, isDefault: boolean): string {
  const body = set.slice(opening.length);
  const language = change ? langOf(change.language) : "";
  const open = change
    ? opening.replace(/ lang="[^"]{0,200}"/, "").replace(/ contentType=/, `${language} contentType=`)
    : opening;
  if (!change) return open + body.replace(ROLE, roleOf(isDefault ? "main" : "alternate"));
  const described = describe({ ...change, isDefault });
  return `${open}${ROLE.test(body) ? body.replace(ROLE, described) : `\n      ${described}${body}`}`;
}

const ROLE = /<Role schemeIdUri="urn:mpeg:dash:role:2011" value="[a-z-]{1,40}"\/>/;
const roleOf = (value: string) => `<Role schemeIdUri="urn:mpeg:dash:role:2011" value="${value}"/>`;
const langOf = (language: string | null) => (language === null ? "" : ` lang="${attribute(language)}"`);

/** Players begin with the track whose role is main. */
function describe({ name, role, isDefault }: AudioLabel): string {
  const own = role === "main" && !isDefault ? "alternate" : role;
  const roles = isDefault && own !== "main" ? ["main", own] : [own];
  return [
    `<Label>${attribute(name)}</Label>`,
    // ETSI TS 102 822-3-1, AudioPurposeCS: for people with impaired sight.
    ...(role === "description"
      ? ['<Accessibility schemeIdUri="urn:tva:metadata:cs:AudioPurposeCS:2007" value="1"/>']
      : []),
    ...roles.map(roleOf),
  ].join("");
}

function addedSet(one: AddedAudio, isDefault: boolean): string {
  const timeline = one.segments
    .map(([start, duration, repeat]) => `<S t="${start}" d="${duration}"${repeat > 0 ? ` r="${repeat}"` : ""}/>`)
    .join("");
  const offset = Math.round((one.startSeconds ?? 0) * one.timescale);
  return `  <AdaptationSet id="${FIRST_ID + one.id}"${langOf(one.language)} contentType="audio" mimeType="audio/mp4" segmentAlignment="true" startWithSAP="1">
      ${describe({ ...one, isDefault })}
      <Representation id="added-audio-${one.id}" bandwidth="${Math.ceil(one.bandwidth)}" codecs="${attribute(one.codec)}" audioSamplingRate="${one.timescale}">
        <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="${one.channels}"/>
        <BaseURL>${attribute(one.base)}</BaseURL>
        <SegmentTemplate timescale="${one.timescale}" initialization="init.mp4" media="$Number%05d$.m4s" startNumber="1"${offset > 0 ? ` presentationTimeOffset="${offset}"` : ""}><SegmentTimeline>${timeline}</SegmentTimeline></SegmentTemplate>
      </Representation>
    </AdaptationSet>
  `;
}
