// What the executable runs first: the bundle, with the code that V8 compiled for it when it was warm. Node's own code
// cache is made before anything has run and so holds hardly a function; most of a start would go into compiling them.
const { getRawAsset } = require("node:sea");
const { Script, constants } = require("node:vm");

const source = Buffer.from(getRawAsset("vodbox.cjs")).toString("utf8");
/* WARM */
const cachedData = Buffer.from(getRawAsset("vodbox.cache"));
/* END */
const script = new Script(source, {
  filename: "vodbox.cjs",
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  cachedData,
});
script.runInThisContext()(require, module, exports);
