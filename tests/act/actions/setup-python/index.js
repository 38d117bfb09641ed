const fs = require("fs");
fs.appendFileSync(process.env.GITHUB_OUTPUT, `python-path=${process.env.RP_ACT_PYTHON}\n`);
