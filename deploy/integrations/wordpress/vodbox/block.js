((wp) => {
  const { createElement: el, useEffect, useState } = wp.element;
  const { Button, Notice, Placeholder, SearchControl, Spinner } = wp.components;
  const { BlockControls, useBlockProps } = wp.blockEditor;
  const { __ } = wp.i18n;

  /** The videos of the library that a search finds, to choose one. */
  function Library({ onChoose }) {
    const [query, setQuery] = useState("");
    const [found, setFound] = useState(null);
    const [fault, setFault] = useState(null);
    const [chosen, setChosen] = useState(null);
    useEffect(() => {
      const stop = new AbortController();
      // A search for each pause of the typing, not for each letter.
      const timer = setTimeout(() => {
        wp.apiFetch({ path: `/vodbox/v1/assets?q=${encodeURIComponent(query)}`, signal: stop.signal })
          .then((assets) => {
            setFound(assets);
            setFault(null);
          })
          .catch((error) => error.name !== "AbortError" && setFault(error.message));
      }, 250);
      return () => {
        clearTimeout(timer);
        stop.abort();
      };
    }, [query]);
    const choose = (asset) => {
      setChosen(asset.id);
      wp.apiFetch({ path: "/vodbox/v1/embeds", method: "POST", data: { asset_id: asset.id } })
        .then(onChoose)
        .catch((error) => {
          setChosen(null);
          setFault(error.message);
        });
    };
    return el(
      "div",
      { style: { width: "100%" } },
      fault !== null && el(Notice, { status: "error", isDismissible: false }, fault),
      el(SearchControl, { label: __("Search for a video", "vodbox"), value: query, onChange: setQuery }),
      found === null && fault === null && el(Spinner),
      found?.length === 0 && el("p", null, __("No video that can be played was found.", "vodbox")),
      el(
        "ul",
        { style: { listStyle: "none", margin: 0, padding: 0 } },
        (found ?? []).map((asset) =>
          el(
            "li",
            { key: asset.id },
            el(
              Button,
              {
                variant: "tertiary",
                isBusy: chosen === asset.id,
                disabled: chosen !== null,
                onClick: () => choose(asset),
              },
              asset.title,
              asset.length && ` (${asset.length})`,
            ),
          ),
        ),
      ),
    );
  }

  function Edit({ attributes: { src, title, width, height }, setAttributes }) {
    const props = useBlockProps();
    if (src === "")
      return el(
        "div",
        props,
        el(
          Placeholder,
          {
            icon: "format-video",
            label: __("vodbox video", "vodbox"),
            instructions: __("Choose a video of your library.", "vodbox"),
          },
          el(Library, { onChoose: setAttributes }),
        ),
      );
    return el(
      "div",
      props,
      el(
        BlockControls,
        { group: "other" },
        el(Button, { onClick: () => setAttributes({ src: "" }) }, __("Replace", "vodbox")),
      ),
      // Without pointer events a click selects the block.
      el("iframe", {
        src,
        title,
        style: { width: "100%", border: 0, aspectRatio: `${width}/${height}`, pointerEvents: "none" },
      }),
    );
  }

  wp.blocks.registerBlockType("vodbox/video", { edit: Edit, save: () => null });
})(window.wp);
