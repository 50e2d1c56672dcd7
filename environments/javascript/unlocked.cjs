// Has npm pass over lockfiles inside packages (npm-shrinkwrap.json): it would believe their URLs,
// and asks the registry instead. Loaded before npm's own code (NODE_OPTIONS in npm.py). If npm
// has no such class any more, this throws, and npm does not run.
const Node = require("/usr/local/lib/node_modules/npm/node_modules/@npmcli/arborist/lib/node.js");
if (!/\bthis\.hasShrinkwrap\b/.test(String(Node))) throw new Error("npm's Node has no hasShrinkwrap");
Object.defineProperty(Node.prototype, "hasShrinkwrap", { get: () => false, set() {} });
