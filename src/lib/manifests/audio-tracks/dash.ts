import { attribute } from "../mpd.ts";
import type { MpdEdit, MpdSetRange } from "../mpd-edits.ts";
import { type AddedAudio, type AudioChanges, type AudioLabel, hasChanges, stereoOf } from "./types.ts";

/** Far above the ids that packagers use, and apart from those of subtitles. */
const FIRST_ID = 2_000_000;

/**
 * Shows the audio tracks of a DASH manifest as they were changed, and adds others (ISO/IEC 23009-1, 5.8.4.3, 5.8.5.5). A
 * manifest with several periods is unchanged.
 */
export const mpdWithAudio =
  (changes: AudioChanges): MpdEdit =>
  (draft) => {
    const end = hasChanges(changes) ? draft.endOfPeriod() : null;
    if (end === null) return;
    const { changed, added } = changes;
    const chosen = [...changed.filter((one) => !one.isRemoved), ...added].find(({ isDefault }) => isDefault);
    const byRendition = new Map(changed.map((one) => [one.rendition, one]));
    let kept = 0;
    for (const set of draft.sets()) {
      if (!set.isAudio) continue;
      const change = byRendition.get(stereoOf(set.representations[0]?.id ?? ""));
      if (change?.isRemoved) {
        draft.remove(set);
        continue;
      }
      const isDefault = chosen ? change === chosen : kept === 0;
      kept++;
      if (change) relabel(draft, set, { ...change, isDefault });
      else if (chosen || isDefault) replaceRole(draft, set, roleOf(isDefault ? "main" : "alternate"));
    }
    const sets = added.map((one, index) => addedSet(one, chosen ? one === chosen : kept === 0 && index === 0));
    draft.insert(end, sets.join(""));
  };

type Draft = Parameters<MpdEdit>[0];

/** The set with another language and other roles. */
function relabel(draft: Draft, set: MpdSetRange, label: AudioLabel): void {
  const opening = draft.text.slice(set.from, set.openTo);
  const relabeled = opening
    .replace(/ lang="[^"]{0,200}"/, "")
    .replace(/ contentType=/, `${langOf(label.language)} contentType=`);
  draft.replace({ from: set.from, to: set.openTo }, relabeled);
  const described = describe(label);
  if (!replaceRole(draft, set, described)) draft.insert(set.openTo, `\n      ${described}`);
}

/** Replaces the first role of a set; false where it has none. */
function replaceRole(draft: Draft, { openTo, to }: MpdSetRange, text: string): boolean {
  const role = ROLE.exec(draft.text.slice(openTo, to));
  if (!role) return false;
  const from = openTo + role.index;
  draft.replace({ from, to: from + role[0].length }, text);
  return true;
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
