const path = require("path");
const { DefaultArtifactClient } = require(path.join(process.env.RP_ACT_NODE_MODULES, "@actions/artifact"));
const input = (name) => process.env[`INPUT_${name.toUpperCase()}`] || "";
const escaped = (text) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");

(async () => {
  const client = new DefaultArtifactClient();
  const root = path.resolve(input("path"));
  const { artifacts } = await client.listArtifacts({ latest: true });
  const pattern = new RegExp(`^${escaped(input("pattern")).replace(/\*/g, "[^/]*")}$`);
  const wanted = artifacts.filter((item) => (input("name") ? item.name === input("name") : pattern.test(item.name)));
  if (input("name") && wanted.length === 0) throw new Error(`there is no artifact ${input("name")}`);
  for (const item of wanted) {
    const folder = input("name") || input("merge-multiple") === "true" ? root : path.join(root, item.name);
    await client.downloadArtifact(item.id, { path: folder });
    console.log(`downloaded ${item.name}`);
  }
})().catch((error) => { console.error(String(error)); process.exit(1); });
