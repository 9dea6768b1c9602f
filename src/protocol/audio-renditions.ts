/**
 * The renditions of an audio track. Each track has a stereo one, which every player plays. With the profile's
 * `audio.channels: 6`, a track of six or more channels also has a 5.1 one.
 */

export const STEREO_CHANNELS = 2;
/** Left, right, center, low frequencies, left and right surround (ISO/IEC 14496-3, channelConfiguration 6). */
export const SURROUND_CHANNELS = 6;

const numbered = (name: string, index: number) => (index === 0 ? name : `${name}-${index + 1}`);

/** The name, and directory, of the stereo rendition of track `index`, from 0. */
export const stereoName = (index: number): string => numbered("audio", index);
/** The same of its 5.1 rendition. */
export const surroundName = (index: number): string => numbered("surround", index);

/** Whether a rendition that the encoder wrote is one of audio, by its name. */
export const isAudioName = (name: string): boolean => /^(audio|surround)(-\d{1,4})?$/.test(name);
