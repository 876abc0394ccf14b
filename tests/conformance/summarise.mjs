// Turns the suite's files into one small JSON document: summarise.mjs REVISION RAW
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

// Records of traffic, not verdicts; their number varies from run to run.
const traffic = new Set(['outgoing-request', 'incoming-response', 'incoming-sse-event', 'stream-closed']);

/** The scenarios that count for a revision, from the suite's own list; none where it has no list, and all that ran count. */
function scoredScenarios(revision) {
  const suite = path.join(process.env.TOOLWARDEN_PEERS, 'node_modules/@modelcontextprotocol/conformance');
  const list = path.join(suite, 'requirements', `${revision}.yaml`);
  if (!existsSync(list)) return undefined;
  const lines = readFileSync(list, 'utf8').split('\n');
  const names = new Set();
  let section;
  for (const line of lines) {
    section = /^(\w+):/.exec(line)?.[1] ?? section;
    const name = /^ {2}- (\S+)$/.exec(line)?.[1];
    if (section === 'server' && name) names.add(name);
  }
  return names;
}

/** One scenario's checks; the second check of one name is called `name (2)`. */
function verdicts(file) {
  const checks = {};
  for (const { id, status } of JSON.parse(readFileSync(file, 'utf8'))) {
    if (traffic.has(id) && status === 'INFO') continue;
    let name = id;
    for (let count = 2; name in checks; count += 1) name = `${id} (${count})`;
    checks[name] = status;
  }
  return checks;
}

function count(scenarios) {
  const all = scenarios.flatMap(({ checks }) => Object.values(checks));
  const of = (status) => all.filter((it) => it === status).length;
  return { scenarios: scenarios.length, passed: of('SUCCESS'), failed: of('FAILURE'), warned: of('WARNING') };
}

const [revision, raw] = process.argv.slice(2);
const scored = scoredScenarios(revision);
const scenarios = {};
for (const directory of readdirSync(raw).sort()) {
  const name = directory.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
  const checks = verdicts(path.join(raw, directory, 'checks.json'));
  scenarios[name] = { scored: scored?.has(name) ?? true, checks };
}
const missing = [...(scored ?? [])].filter((name) => !(name in scenarios));
const list = Object.values(scenarios);
const summary = {
  revision,
  all: count(list),
  scored: count(list.filter((it) => it.scored)),
  missing,
  scenarios,
};
console.log(JSON.stringify(summary, null, 1));
