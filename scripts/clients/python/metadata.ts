import { parse } from "smol-toml";

type Project = {
  name: string;
  version: string;
  description: string;
  "requires-python": string;
  license: { text: string };
  keywords: string[];
  classifiers: string[];
  dependencies: string[];
  "optional-dependencies": Record<string, string[]>;
};

/** The core metadata (version 2.1) that `pyproject.toml` declares, with the README as the description. */
export function coreMetadata(pyproject: string, readme: string): string {
  const project = (parse(pyproject) as { project: Project }).project;
  const extras = Object.entries(project["optional-dependencies"]);
  return [
    "Metadata-Version: 2.1",
    `Name: ${project.name}`,
    `Version: ${project.version}`,
    `Summary: ${project.description}`,
    `License: ${project.license.text}`,
    `Keywords: ${project.keywords.join(",")}`,
    ...project.classifiers.map((classifier) => `Classifier: ${classifier}`),
    `Requires-Python: ${project["requires-python"]}`,
    "Description-Content-Type: text/markdown",
    "License-File: LICENSE",
    ...project.dependencies.map((dependency) => `Requires-Dist: ${dependency}`),
    ...extras.flatMap(([extra, dependencies]) => [
      `Provides-Extra: ${extra}`,
      ...dependencies.map((dependency) => `Requires-Dist: ${dependency}; extra == "${extra}"`),
    ]),
    "",
    readme,
  ].join("\n");
}
