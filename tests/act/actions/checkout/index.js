// Does what the real action does as far as our workflows can tell: a detached HEAD, with `fetch-depth: 0` all
// branches as refs/remotes/origin/*, nothing of the checked-out commit is run. RP_ACT_ORIGIN is the repository.
const { execFileSync } = require("child_process");
const path = require("path");
const input = (name) => process.env[`INPUT_${name.toUpperCase()}`] || "";
const target = path.resolve(process.env.GITHUB_WORKSPACE, input("path") || ".");
const git = (...args) => execFileSync("git", ["-c", "protocol.file.allow=always", ...args], { cwd: target, stdio: "inherit" });
require("fs").mkdirSync(target, { recursive: true });
const origin = process.env.RP_ACT_ORIGIN;
const wanted = input("ref") || process.env.GITHUB_SHA;
git("init", "--quiet", ".");
git("remote", "add", "origin", origin);
const depth = input("fetch-depth") === "0" ? ["+refs/heads/*:refs/remotes/origin/*"] : ["--depth=1"];
git("fetch", "--quiet", "--no-tags", "origin", wanted, ...depth);
git("checkout", "--quiet", "--force", "--detach", wanted);
