import { BitReader } from "../bits.ts";
import { type AudioFormat, ConfigurationInvalid } from "./format.ts";

/** samplingFrequencyIndex (ISO/IEC 14496-3, 1.6.3.4). */
const SAMPLE_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
];
const EXPLICIT_RATE = 15;
/** channelConfiguration (1.6.3.5). 0: the channels are in the first packet. */
const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8];
const LC = 2;
const SBR = 5;
const PS = 29;

/** The format of AAC from its AudioSpecificConfig (1.6.2.1). Throws Error for other object types, and when it is malformed. */
export function readAac(configuration: Buffer): AudioFormat {
  const reader = new BitReader(configuration);
  const readRate = () => {
    const index = reader.bits(4);
    return index === EXPLICIT_RATE ? reader.bits(24) : (SAMPLE_RATES[index] ?? 0);
  };
  let type = reader.bits(5);
  const coreRate = readRate();
  const channels = CHANNELS[reader.bits(4)] ?? 0;
  // With SBR the decoder doubles the rate; with parametric stereo it makes two channels of one.
  const isExtended = type === SBR || type === PS;
  const isParametric = type === PS;
  const sampleRate = isExtended ? readRate() : coreRate;
  if (isExtended) type = reader.bits(5);
  if (type !== LC) throw new ConfigurationInvalid("The audio is not AAC-LC or HE-AAC.");
  if (channels === 0 || sampleRate < 7350 || sampleRate > 96_000 || coreRate < 7350)
    throw new ConfigurationInvalid("The audio has an unsupported sample rate or number of channels.");
  // 4.4.1: frameLengthFlag
  const coreSamples = reader.flag() ? 960 : 1024;
  return {
    sampleRate,
    channels: isParametric ? 2 : channels,
    packetSamples: Math.round((coreSamples * sampleRate) / coreRate),
  };
}
