import { type RecognitionJob, recognitionProcess } from "#platform/outbound/transcribe/whisper/process.ts";

/** The process that recognizes speech with whisper.cpp: started by a worker, in the sandbox. */
export const recognizeCommand = (job: string): Promise<void> => recognitionProcess(JSON.parse(job) as RecognitionJob);
