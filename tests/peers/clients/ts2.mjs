// A client on the TypeScript SDK 2.x; prints one line of JSON. Options: see common.mjs.
import { answerForm, answerModel, callOptions, capabilities, readOptions, run, usePeers } from './common.mjs';

usePeers();
const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');

const modes = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };
const options = readOptions();
const mode = options.mode ?? 'legacy';
const seen = { client: 'ts2', mode, readProtocol: () => client.getNegotiatedProtocolVersion() };
const client = new Client(
  { name: 'toolwarden-ts2', version: '1' },
  { capabilities: capabilities(options), versionNegotiation: { mode: modes[mode] } },
);
if (options.elicit) client.setRequestHandler('elicitation/create', (it) => answerForm(options, seen, it.params));
if (options.sample !== undefined) {
  client.setRequestHandler('sampling/createMessage', (it) => answerModel(options, seen, it.params));
}

const transport = options.url
  ? new StreamableHTTPClientTransport(options.url, { requestInit: { headers: options.headers } })
  : new StdioClientTransport({ ...options.command, env: process.env, stderr: 'inherit' });
await run(
  seen,
  client,
  () => client.connect(transport),
  () => options.tool && client.callTool({ name: options.tool, arguments: options.args }, callOptions(options, seen)),
  options.watch,
);
