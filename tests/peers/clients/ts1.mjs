// A client on the TypeScript SDK 1.x, which knows only the legacy era; prints one line of JSON. Options: see common.mjs.
import { answerForm, answerModel, callOptions, capabilities, isOldest, readOptions, run, usePeers } from './common.mjs';

usePeers();
const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
const { CreateMessageRequestSchema, ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');

const options = readOptions();
let version;
const seen = { client: 'ts1', readProtocol: () => version };
const client = new Client({ name: 'toolwarden-ts1', version: '1' }, { capabilities: capabilities(options) });
if (options.elicit) client.setRequestHandler(ElicitRequestSchema, (it) => answerForm(options, seen, it.params));
if (options.sample !== undefined) {
  client.setRequestHandler(CreateMessageRequestSchema, (it) => answerModel(options, seen, it.params));
}

const overHttp = (url, how) => (isOldest(url) ? new SSEClientTransport(url, how) : new StreamableHTTPClientTransport(url, how));
const transport = options.url
  ? overHttp(options.url, { requestInit: { headers: options.headers } })
  : new StdioClientTransport({ ...options.command, env: process.env, stderr: 'inherit' });
// Every transport of this SDK is told the version once it is agreed; only some remember it.
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (agreed) => {
  version = agreed;
  tell?.(agreed);
};
await run(
  seen,
  client,
  () => client.connect(transport),
  () =>
    options.tool &&
    client.callTool({ name: options.tool, arguments: options.args }, undefined, callOptions(options, seen)),
  options.watch,
);
