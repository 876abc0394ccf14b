// A client that follows its call as a task, on ext-tasks and the TypeScript SDK 2.x; prints one line of JSON. Options: see common.mjs.
import { readOptions, run, usePeers } from './common.mjs';

usePeers();
const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
const { createTaskSessionFromClient, resultFromTaskOutcome, toolDeclarationFromMcpTool } =
  await import('@modelcontextprotocol/ext-tasks/client');

const options = readOptions();
const mode = options.mode ?? 'legacy';
const isModern = mode === 'modern';
const clientInfo = { name: 'toolwarden-tasks', version: '1' };
const seen = { client: 'tasks', mode, states: [], readProtocol: () => client.getNegotiatedProtocolVersion() };
const client = new Client(clientInfo, {
  capabilities: {},
  versionNegotiation: { mode: isModern ? { pin: '2026-07-28' } : 'legacy' },
});
const transport = new StreamableHTTPClientTransport(options.url, { requestInit: { headers: options.headers } });

/** The SDK's own codec knows no tasks of the modern era: ext-tasks wants such requests sent as they are. */
let number = 0;
async function rawDispatch(request, { signal } = {}) {
  const { method, params } = request;
  const response = await fetch(options.url, {
    method: 'POST',
    signal,
    headers: {
      ...options.headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      'mcp-name': params.name ?? params.taskId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: `raw-${number++}`, method, params }),
  });
  const text = await response.text();
  const lines = text.startsWith('{') ? [text] : text.split('\n').filter((line) => line.startsWith('data: '));
  const messages = lines.map((line) => JSON.parse(line.replace(/^data: /, '')));
  const { result, error } = messages.find((message) => 'result' in message || 'error' in message);
  return error ? { kind: 'error', error } : { kind: 'result', result };
}

async function call() {
  const { tools } = await client.listTools();
  const framing = { protocolVersion: '2026-07-28', clientInfo, clientCapabilities: {} };
  const session = createTaskSessionFromClient(client, {
    endpointId: 'toolwarden',
    ...(isModern && { rawDispatch, v2RequestFraming: framing }),
  });
  try {
    const declaration = toolDeclarationFromMcpTool(tools.find((tool) => tool.name === options.tool));
    const execution = await session.callTool(options.tool, options.args, { declaration, task: { preference: 'allow' } });
    seen.kind = execution.kind;
    seen.taskId = execution.handle?.taskId;
    const onEvent = ({ type, task }) => {
      if (type === 'task' && seen.states.at(-1) !== task.status) seen.states.push(task.status);
    };
    const { outcome } = await execution.settle({ onEvent });
    seen.status = outcome.status;
    return resultFromTaskOutcome(outcome);
  } finally {
    await session.close();
  }
}

await run(seen, client, () => client.connect(transport), call);
