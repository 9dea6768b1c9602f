/**
 * What an agent sees at once, by operation, with what a user's words for it are and how it is used together with others. Each
 * further tool costs every client a part of its context; `call_operation` has the others.
 */
const PRIMARY_HINTS: Record<string, string> = {
  listAssets:
    "An asset is a video. Find videos by title (q), by state or by date: with playback_status errored those that failed to encode, whose error says why.",
  searchAssets: "Finds in which videos people speak about something, and when.",
  getAsset: "Whether a video is ready, how far its encoding is, and why it failed.",
  updateAsset:
    "Rename a video, publish it (playback_policy public) or make it private again (signed), move it to a collection.",
  deleteAsset: "Removes a video for good.",
  uploadFromUrl:
    "Adds a video: imports the file at the URL and encodes it. Returns at once; wait_until_ready waits until it can be watched.",
  retryAsset: "Encodes a failed video again.",
  getPlayback: "Returns links to watch or embed a video, with a token where it is signed.",
  createClip: "Cuts a clip, excerpt or highlight out of a video as a new video.",
  trimAsset:
    "Cuts off the beginning or the end of a video. With mode exact a job does it, for which wait_until_ready waits.",
  changeAssets: "Tag, move, publish or delete many videos at once.",
  createShare: "A link for people outside, with a password, an end date or a number of plays.",
  listCollections: "Folders of videos.",
  createCollection: "A folder for videos. Move videos into it with change_assets.",
  listSubtitles: "Which captions and languages a video has.",
  createSubtitle: "Adds captions that are written already; file is their text.",
  generateSubtitle: "Transcribes what is spoken; wait_until_ready with the id of the job waits until they are there.",
  translateSubtitle: "Adds captions in another language.",
  getTranscript: "The spoken words of a video as text, to read or summarize.",
  setTrack: "Adds chapters: kind chapter, and for each a cue with payload {title}.",
  getAssetAnalytics: "Who watched a video: by country, device and referring page with details.",
  getAnalytics: "What was watched in all videos: the most popular ones with top.",
  getBillingEstimate: "What this month will cost.",
  listChannels: "Channels of live streams, and which of them are live now.",
  createChannel: "Sets up a live stream.",
};

/** Words for the rest, which `list_operations` finds by them. */
const FURTHER_HINTS: Record<string, string> = {
  createPlaybackRestriction: "Only these websites may embed the videos.",
  createWebhook: "Sends events to your server, such as that a video is ready.",
  listJobs: "What is encoding at the moment, and how long the queue is.",
  getWatchedNow: "How many people are watching at the moment.",
  createTenantUser: "Gives a colleague a login.",
  createInvitation: "Gives a colleague a login, who chooses the password.",
  eraseViewer: "Forgets a viewer's data, as the GDPR requires.",
  listActivity: "Who renamed, changed or deleted a video.",
  listStaticRenditions: "MP4 files to download.",
  createStaticRendition: "Offers a video as an MP4 file to download.",
  listDuplicates: "Finds videos that were uploaded twice.",
  setPoster: "Chooses the thumbnail.",
};

export const PRIMARY: readonly string[] = Object.keys(PRIMARY_HINTS);
export const HINTS: Readonly<Record<string, string>> = { ...PRIMARY_HINTS, ...FURTHER_HINTS };
