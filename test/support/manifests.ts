/** Small playlists and MPDs that refer to the given objects. */
export const media = (...lines: string[]) =>
  ["#EXTM3U", "#EXT-X-TARGETDURATION:4", ...lines, "#EXT-X-ENDLIST", ""].join("\n");
export const segment = (uri: string) => media("#EXTINF:4,", uri);
export const master = (uri: string, ...lines: string[]) =>
  ["#EXTM3U", ...lines, "#EXT-X-STREAM-INF:BANDWIDTH=1000", uri, ""].join("\n");
export const mpd = (inner: string, attributes = 'type="static" mediaPresentationDuration="PT6.5S"') =>
  `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" ${attributes}>${inner}</MPD>`;
export const representation = (inner: string, attributes = 'id="low" bandwidth="800000"') =>
  mpd(`<Period><AdaptationSet><Representation ${attributes}>${inner}</Representation></AdaptationSet></Period>`);
export const template = (attributes: string, inner = "") =>
  representation(`<SegmentTemplate ${attributes}>${inner}</SegmentTemplate>`);
export const timeline = (line: string) => `<SegmentTimeline>${line}</SegmentTimeline>`;
