import { PageHead } from "../components/page-head.tsx";
import { useTexts } from "../texts/texts.tsx";

export default function NotFound() {
  const t = useTexts();
  return (
    <>
      <PageHead title={t("notFoundTitle")} />
      <p>{t("notFound")}</p>
    </>
  );
}
