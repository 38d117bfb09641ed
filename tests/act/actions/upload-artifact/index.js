const fs = require("fs");
const path = require("path");
const { DefaultArtifactClient } = require(path.join(process.env.RP_ACT_NODE_MODULES, "@actions/artifact"));
const input = (name) => process.env[`INPUT_${name.toUpperCase()}`] || "";

// The real action leaves hidden files out, and so do we.
function files(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).filter((entry) => !entry.name.startsWith(".")).flatMap((entry) => {
    const place = path.join(folder, entry.name);
    return entry.isDirectory() ? files(place) : [place];
  });
}

(async () => {
  const root = path.resolve(input("path"));
  const found = fs.existsSync(root) ? (fs.statSync(root).isDirectory() ? files(root) : [root]) : [];
  if (found.length === 0) {
    console.log(`no files at ${root}`);
    process.exit(input("if-no-files-found") === "error" ? 1 : 0);
  }
  const base = fs.statSync(root).isDirectory() ? root : path.dirname(root);
  await new DefaultArtifactClient().uploadArtifact(input("name"), found, base, {
    compressionLevel: Number(input("compression-level")),
  });
  console.log(`uploaded ${found.length} files as ${input("name")}`);
})().catch((error) => { console.error(String(error)); process.exit(1); });
