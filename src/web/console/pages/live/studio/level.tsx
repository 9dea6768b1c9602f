import { useEffect, useRef } from "preact/hooks";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "../texts.ts";

const REFRESH_MS = 100;
/** What is quieter is shown as silence. */
const FLOOR_DB = -60;

/** How loud the audio of `stream` is. */
export function Level({ stream }: { stream: MediaStream }) {
  const t = useTexts(texts);
  const meter = useRef<HTMLMeterElement>(null);
  useEffect(() => {
    if (stream.getAudioTracks().length === 0) return;
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
      if (meter.current) meter.current.value = Math.max(FLOOR_DB, 20 * Math.log10(peak));
    }, REFRESH_MS);
    return () => {
      clearInterval(timer);
      void context.close();
    };
  }, [stream]);
  if (stream.getAudioTracks().length === 0) return <p class="fine">{t("noAudio")}</p>;
  return <meter class="level" ref={meter} min={FLOOR_DB} max={0} high={-6} value={FLOOR_DB} aria-label={t("level")} />;
}
