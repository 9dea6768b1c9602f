declare module "mpd-parser" {
  type Segment = {
    resolvedUri: string;
    uri: string;
    duration: number;
    presentationTime: number;
    map: { resolvedUri: string };
  };
  type Playlist = { endList: boolean; segments: Segment[]; attributes: Record<string, unknown> };
  export function parse(
    manifest: string,
    options: { manifestUri: string },
  ): {
    duration: number;
    playlists: Playlist[];
    mediaGroups: { AUDIO: Record<string, Record<string, { playlists: Playlist[] }>> };
  };
}
