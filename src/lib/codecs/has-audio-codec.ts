const AUDIO_CODEC = /\b(mp4a|ac-3|ec-3|ac-4|opus|flac|alac|dts[cehl])\b/i;

/** Whether a list of codecs (RFC 6381) names one of audio. */
export const hasAudioCodec = (codecs: string | null | undefined): boolean => AUDIO_CODEC.test(codecs ?? "");
