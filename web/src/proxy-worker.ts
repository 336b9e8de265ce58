// The worker of env.wasm.proxy: a program of its own, which runs sessions for another thread.
import {ProviderUnavailable, type Backend} from '../common/backend.js';
import {env, type InferenceSessionHandler, Tensor} from '../common/index.js';
import {webnnBackend} from '../webnn/session.js';
import {checkFlags} from './flags.js';
import {isNode} from './host.js';
import {
  buffersOf,
  type CreateReply,
  type Reply,
  type Request,
  type RunReply,
  type SentError,
  type Settings,
} from './proxy-protocol.js';
import {saveFilesWith} from './save-file.js';
import {wasmBackend} from './session.js';

const BACKENDS: Record<string, Backend> = {
  cpu: wasmBackend,
  wasm: wasmBackend,
  webnn: webnnBackend,
};

type Send = (reply: Reply, transfer: ArrayBuffer[]) => void;

const sessions = new Map<number, InferenceSessionHandler>();
let count = 0;

function apply({wasm, tenon, ...others}: Settings): void {
  Object.assign(env, others);
  Object.assign(env.wasm, wasm);
  Object.assign(env.tenon, tenon);
  checkFlags();
}

// A session is forgotten only by itself: it refuses calls after its release.
function sessionOf(number: number): InferenceSessionHandler {
  return sessions.get(number)!;
}

async function create({provider, model, options}: Request & {kind: 'create'}): Promise<CreateReply> {
  const handler = await BACKENDS[provider].createInferenceSessionHandler(model, options);
  const session = ++count;
  sessions.set(session, handler);
  const {inputMetadata, outputMetadata} = handler;
  return {session, inputMetadata, outputMetadata};
}

async function run({session, feeds, fetches, options}: Request & {kind: 'run'}): Promise<RunReply> {
  const tensors = Object.entries(feeds).map(([name, {type, data, dims}]) => [
    name,
    new Tensor(type, data, dims),
  ]);
  const results = await sessionOf(session).run(
    Object.fromEntries(tensors),
    Object.fromEntries(fetches.map((name) => [name, null])),
    options,
  );
  const outputs = Object.entries(results).map(([name, {type, dims, data}]) => [
    name,
    {type, dims, data},
  ]);
  return {outputs: Object.fromEntries(outputs), report: options.report};
}

async function answer(request: Request): Promise<[value: unknown, transfer: ArrayBuffer[]]> {
  switch (request.kind) {
    case 'init':
      apply(request.settings);
      await BACKENDS[request.provider].init(request.provider, request.entry);
      return [undefined, []];
    case 'create':
      return [await create(request), []];
    case 'run': {
      const reply = await run(request);
      return [reply, buffersOf(reply.outputs)];
    }
    case 'startProfiling':
      return [sessionOf(request.session).startProfiling(), []];
    case 'endProfiling':
      return [sessionOf(request.session).endProfiling(), []];
    case 'release':
      return [await sessionOf(request.session).dispose(), []];
  }
}

function sentError(error: unknown): SentError {
  const {name = 'Error', message = String(error), code} = Object(error) as Partial<SentError>;
  return {name, message, code, isUnavailable: error instanceof ProviderUnavailable};
}

async function serve(request: Request, send: Send): Promise<void> {
  const {id} = request;
  try {
    const [value, transfer] = await answer(request);
    send({id, value}, transfer);
  } catch (error) {
    send({id, error: sentError(error)}, []);
  }
}

async function start(): Promise<void> {
  if (isNode) {
    const parentPort = (await import('node:worker_threads')).parentPort!;
    const send: Send = (reply, transfer) => parentPort.postMessage(reply, transfer);
    parentPort.on('message', (request) => void serve(request as Request, send));
    return;
  }
  const send: Send = (reply, transfer) => postMessage(reply, {transfer});
  saveFilesWith((path, bytes) => send({id: 0, file: {path, bytes}}, [bytes.buffer]));
  onmessage = ({data}) => void serve(data, send);
}

void start();
