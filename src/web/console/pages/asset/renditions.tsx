import { Badge } from "#web/console/components/badge.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { bitrate, count } from "#web/console/format.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { ownUrl } from "#web/console/own-url.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { Playback } from "#web/console/types.ts";
import type { SectionProps } from "./section.ts";
import { texts } from "./texts.ts";

/**
 * The target duration of the first rendition's segments, in whole seconds; null when the page may not read the playlist,
 * because storage delivers it.
 */
async function segmentSeconds({ hls_url }: Playback): Promise<number | null> {
  try {
    const master = await fetch(ownUrl(hls_url, "/media/"));
    const first = (await master.text()).split("\n").find((line) => line !== "" && !line.startsWith("#"));
    if (!master.ok || first === undefined) return null;
    const playlist = await (await fetch(new URL(first, master.url))).text();
    const [, seconds] = /^#EXT-X-TARGETDURATION:(\d{1,6})\b/m.exec(playlist) ?? [];
    return seconds === undefined ? null : Number(seconds);
  } catch {
    return null;
  }
}

/** Names of standards, in all languages. */
const HDR_NAMES = { hdr10: "HDR10", hlg: "HLG" };

export default function Renditions({ asset, playback }: SectionProps) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const segments = useResource(async () => playback && (await segmentSeconds(playback)), [playback]);
  if (!playback) return <p class="empty">{t("notReady")}</p>;
  const hdrOf = (name: string) => asset.renditions.find((one) => one.name === name)?.hdr ?? null;
  const items = playback.renditions.map((one, index) => ({ ...one, hdr: hdrOf(one.name), id: index }));
  if (items.length === 0) return <p class="empty">{t("noRenditions")}</p>;
  const highest = Math.max(...items.map(({ bandwidth }) => bandwidth));
  const share = (bits: number | null) => `${((bits ?? 0) / highest) * 100}%`;
  return (
    <>
      <ErrorNotice error={segments.error} />
      <Table
        items={items}
        columns={[
          {
            title: t("resolution"),
            cell: ({ width, height, frame_rate, hdr }) =>
              width === null ? (
                t("audioOnly")
              ) : (
                <>
                  {`${width} × ${height}${frame_rate ? `, ${count(frame_rate, language)} fps` : ""}`}
                  {hdr && (
                    <>
                      {" "}
                      <Badge state="hdr" text={HDR_NAMES[hdr]} />
                    </>
                  )}
                </>
              ),
          },
          { title: t("codecs"), cell: ({ codecs }) => <code>{codecs.replaceAll(",", ", ")}</code> },
          {
            title: t("average"),
            cell: ({ average_bandwidth: bits }) => (bits === null ? "–" : bitrate(bits, language)),
          },
          { title: t("peak"), cell: ({ bandwidth }) => bitrate(bandwidth, language) },
          {
            title: t("bitrates"),
            // The two columns before have the same numbers as text.
            cell: ({ average_bandwidth, bandwidth }) => (
              <span class="bitrate" aria-hidden="true">
                <span class="peak" style={{ width: share(bandwidth) }} />
                <span class="average" style={{ width: share(average_bandwidth) }} />
              </span>
            ),
          },
          ...(items.some(({ score }) => score !== undefined)
            ? [
                {
                  title: t("score"),
                  cell: ({ score }: (typeof items)[number]) => (score === undefined ? "–" : count(score, language)),
                },
              ]
            : []),
          {
            title: t("segments"),
            cell: () => (segments.value === null ? "–" : t("segmentSeconds", { count: segments.value })),
          },
        ]}
      />
    </>
  );
}
