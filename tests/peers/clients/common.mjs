// What the TypeScript clients share: options, answers to the server's questions, and the one line they print.
import { registerHooks } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `usage: PROGRAM [options] URL
       PROGRAM [options] -- COMMAND ARGUMENT...
  --mode legacy|auto|modern   era of the protocol (ts2 only; default legacy)
  --tool NAME                 call this tool after listing
  --args JSON                 its arguments
  --elicit accept|decline|cancel   offer elicitation and answer like this
  --content JSON              what to accept with (default: made from the form)
  --sample TEXT               offer sampling and answer with this text
  --progress                  report the progress notifications of the call
  --cancel-after MS           give up the call after so many milliseconds
  --watch URI                 watch this resource and the list of tools, report the news (ts1, ts2)
  --header 'NAME: VALUE'      send this header (may be repeated)`;

/** Lets imports find the installed packages, which are not in the repository. */
export function usePeers() {
  const peers = process.env.TOOLWARDEN_PEERS;
  if (!peers) fail('TOOLWARDEN_PEERS is not set: start this program with tests/peers/run');
  const parentURL = pathToFileURL(path.join(peers, 'package.json')).href;
  registerHooks({
    resolve: (name, context, next) =>
      next(name, name.startsWith('@modelcontextprotocol/') ? { ...context, parentURL } : context),
  });
}

function fail(message) {
  console.error(message);
  process.exit(2);
}

/** The command line as an object. */
export function readOptions() {
  const text = { type: 'string' };
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        mode: text, tool: text, args: text, elicit: text, content: text, sample: text, 'cancel-after': text, watch: text,
        progress: { type: 'boolean' }, header: { type: 'string', multiple: true }, help: { type: 'boolean' },
      },
    });
    if (values.help || positionals.length === 0) fail(usage);
    const isUrl = /^https?:/.test(positionals[0]);
    return {
      ...values,
      args: JSON.parse(values.args ?? '{}'),
      content: values.content && JSON.parse(values.content),
      cancelAfter: values['cancel-after'] && Number(values['cancel-after']),
      headers: Object.fromEntries((values.header ?? []).map((line) => line.split(/:\s*(.*)/s).slice(0, 2))),
      url: isUrl ? new URL(positionals[0]) : undefined,
      command: isUrl ? undefined : { command: positionals[0], args: positionals.slice(1) },
    };
  } catch (error) {
    return fail(`${error.message}\n${usage}`);
  }
}

/** Whether an address is one of the oldest HTTP transport. */
export function isOldest(url) {
  return /^\/sse(\/|$)/.test(url.pathname);
}

/** What the client says it can do. */
export function capabilities(options) {
  return { ...(options.elicit && { elicitation: {} }), ...(options.sample !== undefined && { sampling: {} }) };
}

/** The answer to a form, and a note that it was asked. */
export function answerForm(options, seen, params) {
  seen.elicited = [...(seen.elicited ?? []), params.message];
  if (options.elicit !== 'accept') return { action: options.elicit };
  const fields = Object.entries(params.requestedSchema?.properties ?? {});
  const filled = Object.fromEntries(fields.map(([name, schema]) => [name, fill(schema)]));
  return { action: 'accept', content: options.content ?? filled };
}

function fill(schema) {
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.oneOf) return schema.oneOf[0].const;
  if (schema.type === 'array') return [];
  return { string: 'text', boolean: true, integer: 1, number: 1 }[schema.type];
}

/** The model's answer, and a note that it was asked. */
export function answerModel(options, seen, params) {
  seen.sampled = [...(seen.sampled ?? []), params.messages?.at(-1)?.content?.text];
  return { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: options.sample } };
}

/** Options of the call itself: progress and giving up. */
export function callOptions(options, seen) {
  const call = {};
  if (options.progress) {
    seen.progress = [];
    call.onprogress = ({ progress, total }) => seen.progress.push({ progress, total });
  }
  if (options.cancelAfter !== undefined) {
    const controller = new AbortController();
    setTimeout(() => {
      seen.cancelled = true;
      controller.abort('given up');
    }, options.cancelAfter);
    call.signal = controller.signal;
  }
  return call;
}

/** Watches a resource, and notes what the server tells. */
async function watch(seen, client, uri) {
  seen.news = [];
  client.fallbackNotificationHandler = async ({ method, params }) => seen.news.push({ method, uri: params?.uri });
  if (seen.mode === 'modern') await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true });
  else await client.subscribeResource({ uri });
}

/** Connects, lists, calls; prints what was seen as one line of JSON. */
export async function run(seen, client, connect, call, watched) {
  let failed = false;
  try {
    await connect();
    seen.server = client.getServerVersion();
    seen.protocol = seen.readProtocol();
    seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
    try {
      if (watched) await watch(seen, client, watched);
      seen.result = await call();
      // News may come on a stream of their own, after the answer.
      if (watched) await new Promise((done) => setTimeout(done, 700));
    } catch (error) {
      seen.error = describe(error);
    }
  } catch (error) {
    seen.error = describe(error);
    failed = true;
  }
  await print(seen);
  // Giving up is itself a message, which has to leave before the connection closes.
  if (seen.cancelled) await new Promise((done) => setTimeout(done, 300));
  // A server that never answers must not keep the program alive.
  setTimeout(() => process.exit(failed ? 1 : 0), 2000).unref();
  await client.close().catch(() => {});
  process.exit(failed ? 1 : 0);
}

/** Prints what was seen, and waits until it is out: leaving drops what a pipe has not taken. */
export function print(seen) {
  return new Promise((done) => process.stdout.write(`${JSON.stringify(seen)}\n`, done));
}

function describe(error) {
  return { name: error?.name, code: error?.code, message: String(error?.message ?? error), data: error?.data };
}
