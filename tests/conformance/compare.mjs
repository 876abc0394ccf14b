#!/usr/bin/env node
// Compares two summaries check by check: compare.mjs DIRECT.json OTHER.json
// Prints every difference; fails if something that passed in the first does not pass in the second.
import { readFileSync } from 'node:fs';

const [first, second] = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, 'utf8')));
let worse = 0;
for (const scenario of new Set([...Object.keys(first.scenarios), ...Object.keys(second.scenarios)])) {
  const [before, after] = [first, second].map((it) => it.scenarios[scenario]?.checks ?? {});
  for (const check of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[check] ?? 'absent', after[check] ?? 'absent'];
    if (was === is) continue;
    if (was === 'SUCCESS') worse += 1;
    console.log(`${scenario}: ${check}: ${was} -> ${is}`);
  }
}
process.exit(worse === 0 ? 0 : 1);
