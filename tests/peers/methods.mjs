// Prints the methods of every protocol revision, by who sends them, as the published schemas name them.
// The schemas come from the installed conformance suite, which carries all of them; tests/methods.json is this output.
//   tests/peers/run node tests/peers/methods.mjs > tests/methods.json
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { runInNewContext } from 'node:vm';

const bundle = path.join(process.env.TOOLWARDEN_PEERS, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const source = readFileSync(bundle, 'utf8');

/** The names under which the bundle keeps the schemas, by revision. */
function schemaNames() {
  const table = /\{("\d{4}-\d\d-\d\d":\w+,)+\[(\w+)\]:(\w+)\}/.exec(source);
  if (!table) throw new Error('the suite no longer keeps its schemas in a table: look for them in its bundle');
  const [whole, , latest, latestSchema] = table;
  const dated = [...whole.matchAll(/"(\d{4}-\d\d-\d\d)":(\w+)/g)].map(([, revision, name]) => [revision, name]);
  const revision = new RegExp(`[ ,]${latest}=\`(\\d{4}-\\d\\d-\\d\\d)\``).exec(source)[1];
  return [...dated, [revision, latestSchema]];
}

/** The object literal assigned to a name. It is data, and it is read in an empty context. */
function literal(name) {
  const start = source.indexOf(`${name}={$schema:`) + name.length + 1;
  let depth = 0;
  let quote;
  for (let at = start; at < source.length; at += 1) {
    const char = source[at];
    if (quote) {
      if (char === '\\') at += 1;
      else if (char === quote) quote = undefined;
    } else if ('`\'"'.includes(char)) quote = char;
    else if (char === '{') depth += 1;
    else if (char === '}' && (depth -= 1) === 0) return runInNewContext(`(${source.slice(start, at + 1)})`);
  }
  throw new Error(`the schema ${name} does not end`);
}

/** The methods of a union, through its references. */
function methods(schema, name) {
  const types = schema.$defs ?? schema.definitions;
  const visit = (type) => {
    if (type === undefined) return [];
    if (type.$ref) return visit(types[type.$ref.split('/').at(-1)]);
    const parts = type.anyOf ?? type.oneOf;
    return parts ? parts.flatMap(visit) : [type.properties.method.const];
  };
  return [...new Set(visit(types[name]))].sort();
}

const all = {};
for (const [revision, name] of schemaNames()) {
  const schema = literal(name);
  all[revision] = {
    clientRequests: methods(schema, 'ClientRequest'),
    clientNotifications: methods(schema, 'ClientNotification'),
    serverRequests: methods(schema, 'ServerRequest'),
    serverNotifications: methods(schema, 'ServerNotification'),
    // Questions inside an `input_required` result, which replaced the server's requests.
    inputRequests: methods(schema, 'InputRequest'),
  };
}
console.log(JSON.stringify(all, null, 2));
