import { CopyButton } from "./copy-button.tsx";

/** A secret that the API returns once. */
export function ShownOnce({ text, secret }: { text: string; secret: string }) {
  return (
    <div class="notice" role="status">
      <p>{text}</p>
      <p>
        <code>{secret}</code>
      </p>
      <CopyButton text={secret} />
    </div>
  );
}
