// The page's side of env.wasm.proxy: sessions in a worker, which is started for the first of them,
// and again after it has ended. It is a bundle of its own, loaded when it is asked for, so what
// exists once in the package comes from the entry that loaded it.
import type {ProviderUnavailable} from '../common/backend.js';
import type {
  Backend,
  env,
  FileType,
  InferenceSession,
  InferenceSessionHandler,
  ProviderEntry,
  SessionHandler,
  Tensor,
} from '../common/index.js';
import {arrayOver, isOnCpu} from '../common/tensor.js';
import {isNode} from './host.js';
import {
  buffersOf,
  type CreateReply,
  type Reply,
  type Request,
  type RequestBody,
  type RunReply,
  type SentError,
  type SentTensor,
  type Settings,
} from './proxy-protocol.js';
import {saveFile} from './save-file.js';

// What a client and the entry that loaded it share.
export interface Entry {
  readonly env: typeof env;
  readonly Tensor: typeof Tensor;
  readonly ProviderUnavailable: typeof ProviderUnavailable;
}

// What workers of browsers and of Node.js have in common.
interface Port {
  postMessage(message: Request, transfer: ArrayBuffer[]): void;
  terminate(): unknown;
  // Whether Node.js waits for the worker.
  ref?(): void;
  unref?(): void;
}

interface Listener {
  onMessage(reply: Reply): void;
  onEnd(reason: string): void;
}

const workerAddress = () => new URL('./proxy-worker.js', import.meta.url);

async function startInNode(listener: Listener): Promise<Port> {
  const {Worker} = await import('node:worker_threads');
  const worker = new Worker(workerAddress(), {
    execArgv: [], // options of the program that started Node.js may be for that program alone
  });
  worker.on('message', (reply) => listener.onMessage(reply as Reply));
  worker.on('error', (error) => listener.onEnd((error as Error).message));
  worker.on('exit', (status) => listener.onEnd(`it exited with status ${status}`));
  worker.unref();
  return worker;
}

function newWorker(): Worker {
  try {
    // Bundlers of applications know a worker by this form.
    return new Worker(new URL('./proxy-worker.js', import.meta.url), {type: 'module'});
  } catch (error) {
    // A worker of another origin may only be started by a script of this one.
    const {href, origin} = workerAddress();
    if (origin === globalThis.location?.origin) throw error;
    const script = new Blob([`import ${JSON.stringify(href)};`], {type: 'text/javascript'});
    return new Worker(URL.createObjectURL(script), {type: 'module'});
  }
}

function startInBrowser(listener: Listener): Port {
  const worker = newWorker();
  worker.onmessage = ({data}) => listener.onMessage(data);
  worker.onerror = ({message}) => listener.onEnd(message || `cannot load ${workerAddress()}`);
  worker.onmessageerror = () => listener.onEnd('a message could not be read');
  return worker;
}

function errorOf({name, message, code}: SentError): Error {
  const kinds: Record<string, ErrorConstructor> = {TypeError, RangeError};
  const error = new (kinds[name] ?? Error)(message);
  return code === undefined ? error : Object.assign(error, {code});
}

interface Waiting {
  resolve(value: never): void;
  reject(error: Error): void;
}

// One worker and the requests that it has not answered.
class Proxy {
  readonly #waiting = new Map<number, Waiting>();
  readonly #port: Promise<Port>;
  #count = 0;
  #end: Error | undefined;
  // Whether the worker has a module; then it does not need the bytes of another one.
  isReady = false;

  constructor(readonly entry: Entry) {
    const listener = {
      onMessage: (reply: Reply) => this.#settle(reply),
      onEnd: (reason: string) => this.#fail(reason),
    };
    this.#port = (async () => (isNode ? startInNode(listener) : startInBrowser(listener)))();
    this.#port.catch((error) => this.#fail(error.message));
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  async request(body: RequestBody, transfer: ArrayBuffer[] = []): Promise<never> {
    const port = await this.#port;
    if (this.#end !== undefined) throw this.#end;
    const id = ++this.#count;
    const answer = new Promise<never>((resolve, reject) => {
      this.#waiting.set(id, {resolve, reject});
    });
    try {
      port.postMessage({...body, id}, transfer);
    } catch (error) {
      this.#waiting.delete(id);
      throw new TypeError(`env.wasm.proxy: the options cannot be sent to the worker: ${error}`);
    }
    port.ref?.();
    try {
      return await answer;
    } finally {
      if (this.#waiting.size === 0) port.unref?.();
    }
  }

  #settle(reply: Reply): void {
    if ('file' in reply) {
      void saveFile(reply.file.path, reply.file.bytes);
      return;
    }
    const waiting = this.#waiting.get(reply.id)!;
    this.#waiting.delete(reply.id);
    if (!('error' in reply)) return waiting.resolve(reply.value as never);
    const {error} = reply;
    const {ProviderUnavailable} = this.entry;
    waiting.reject(error.isUnavailable ? new ProviderUnavailable(error.message) : errorOf(error));
  }

  #fail(reason: string): void {
    if (this.#end !== undefined) return;
    this.#end = new Error(`the worker of env.wasm.proxy ended: ${reason}`);
    for (const {reject} of this.#waiting.values()) reject(this.#end);
    this.#waiting.clear();
    void this.#port.then((port) => port.terminate()).catch(() => {});
  }
}

// An address that the worker, whose own is another one, understands.
function absolute(address: string | URL): string {
  return isNode ? String(address) : new URL(address, globalThis.document?.baseURI ?? location.href).href;
}

function settingsNow({env}: Entry, isReady: boolean): Settings {
  const {wasmPaths, wasmBinary, proxy, ...wasm} = env.wasm as Record<string, never>;
  const {stats, allocate, free, ...tenon} = env.tenon;
  const paths =
    typeof wasmPaths === 'object' && !((wasmPaths as unknown) instanceof URL)
      ? Object.fromEntries(
          Object.entries(wasmPaths).map(([name, path]) => [name, path && absolute(path as string)]),
        )
      : wasmPaths && absolute(wasmPaths);
  const module = isReady ? {} : {wasmPaths: paths, wasmBinary};
  return {
    logLevel: env.logLevel,
    debug: env.debug,
    trace: env.trace,
    wasm: {...wasm, ...module},
    tenon,
  };
}

// An entry of executionProviders. Objects of devices stay in their thread.
function checkEntry(entry: ProviderEntry | undefined): void {
  for (const [name, value] of Object.entries(typeof entry === 'object' ? entry : {})) {
    if (['object', 'function'].includes(typeof value) && value !== null) {
      throw new TypeError(
        `executionProviders: with env.wasm.proxy, '${name}' cannot be used: the worker has its own devices`,
      );
    }
  }
}

function checkLocations({preferredOutputLocation: given}: InferenceSession.SessionOptions): void {
  const places = typeof given === 'object' ? Object.values(given) : [given ?? 'cpu'];
  const other = places.find((place) => place !== 'cpu');
  if (other === undefined) return;
  throw new Error(
    `options.preferredOutputLocation: with env.wasm.proxy, outputs are at 'cpu', not at '${other}'`,
  );
}

function sentOptions(options: InferenceSession.SessionOptions): InferenceSession.SessionOptions {
  checkLocations(options);
  options.executionProviders?.forEach(checkEntry);
  if (!Array.isArray(options.externalData)) return options;
  const place = (data: FileType) => (typeof data === 'string' ? absolute(data) : data);
  const externalData = options.externalData.map((file) =>
    typeof file === 'string'
      ? {path: file, data: place(file)}
      : {...file, data: place(file.data)},
  );
  return {...options, externalData};
}

// The bytes in memory of their own.
function copyOf(data: Tensor.DataType): Uint8Array<ArrayBuffer> {
  const {buffer, byteOffset, byteLength} = data as Uint8Array;
  return new Uint8Array(new Uint8Array(buffer, byteOffset, byteLength));
}

// A copy, which is transferred: the application's tensor stays as it is.
function sentFeed(name: string, tensor: Tensor): SentTensor {
  if (!isOnCpu(tensor)) {
    throw new Error(
      `feeds: input '${name}': with env.wasm.proxy, tensors are at 'cpu', not at '${tensor.location}'`,
    );
  }
  const {type, dims, data} = tensor;
  const copy = type === 'string' ? [...(data as string[])] : arrayOver(type, copyOf(data).buffer);
  return {type, dims: [...dims], data: copy};
}

class ProxiedSession implements InferenceSessionHandler {
  readonly #proxy: Proxy;
  readonly #session: number;
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];

  constructor(proxy: Proxy, {session, inputMetadata, outputMetadata}: CreateReply) {
    this.#proxy = proxy;
    this.#session = session;
    this.inputMetadata = inputMetadata;
    this.outputMetadata = outputMetadata;
  }

  async run(
    feeds: SessionHandler.FeedsType,
    fetches: SessionHandler.FetchesType,
    options: InferenceSession.RunOptions,
  ): Promise<SessionHandler.ReturnType> {
    const given = Object.keys(fetches).find((name) => fetches[name] !== null);
    if (given !== undefined) {
      throw new Error(`fetches: output '${given}': with env.wasm.proxy, fetches are names alone`);
    }
    const sent = Object.fromEntries(
      Object.entries(feeds).map(([name, tensor]) => [name, sentFeed(name, tensor)]),
    );
    const {report: _earlier, ...sentRunOptions} = options;
    const {outputs, report}: RunReply = await this.#proxy.request(
      {
        kind: 'run',
        session: this.#session,
        feeds: sent,
        fetches: Object.keys(fetches),
        options: sentRunOptions,
      },
      buffersOf(sent),
    );
    if (report !== undefined) options.report = report;
    return Object.fromEntries(
      Object.entries(outputs).map(([name, {type, data, dims}]) => [
        name,
        new this.#proxy.entry.Tensor(type, data, dims),
      ]),
    );
  }

  startProfiling(): void {
    this.#tell('startProfiling');
  }

  endProfiling(): void {
    this.#tell('endProfiling');
  }

  dispose(): Promise<void> {
    return this.#proxy.request({kind: 'release', session: this.#session});
  }

  #tell(kind: 'startProfiling' | 'endProfiling'): void {
    this.#proxy.request({kind, session: this.#session}).catch((error) => console.error(error));
  }
}

// The sessions of one entry in a worker.
export class ProxyClient {
  #current: Proxy | undefined;

  constructor(readonly entry: Entry) {}

  // The backend of the provider `name` in the worker.
  backend(name: string): Backend {
    return {
      init: async (_name, entry) => {
        checkEntry(entry);
        const proxy = this.#proxy();
        const settings = settingsNow(this.entry, proxy.isReady);
        await proxy.request({kind: 'init', settings, provider: name, entry});
        proxy.isReady = true;
      },

      createInferenceSessionHandler: async (model, options) => {
        const proxy = this.#proxy();
        const source = typeof model === 'string' ? absolute(model) : copyOf(model);
        const transfer = typeof source === 'string' ? [] : [source.buffer];
        const body: RequestBody = {
          kind: 'create',
          provider: name,
          model: source,
          options: sentOptions(options),
        };
        return new ProxiedSession(proxy, await proxy.request(body, transfer));
      },
    };
  }

  #proxy(): Proxy {
    if (this.#current === undefined || this.#current.hasEnded) {
      this.#current = new Proxy(this.entry);
    }
    return this.#current;
  }
}
