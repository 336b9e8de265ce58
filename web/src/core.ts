// The WebAssembly module. It is loaded once and called through its exports (shim/), which use
// addresses, sizes and codes. A module that trapped cannot be used any more: all its calls fail,
// and the next request loads a new module.
import {env, logSeverity} from '../common/env.js';
import {messageOf} from '../common/error-message.js';
import {binaryName, checkEngine} from './features.js';
import {checkFlags} from './flags.js';
import {randomSource} from './host.js';
import {threadCount, Workers} from './threads.js';
import {wasiImports} from './wasi.js';
import {loadModule, withTimeout} from './wasm-source.js';
import {WrittenFiles} from './written-files.js';

type Call = (...args: number[]) => number;

// An error of the core: the operation that failed, followed by the core's text; and its code.
export class CoreError extends Error {
  constructor(
    operation: string,
    text: string,
    readonly code: number,
  ) {
    super(`${operation}: ${text}`);
    this.name = 'Error';
  }
}

const MOST_BYTES = 2 ** 32 - 1; // of a size in the module
const FAIL = 1; // ORT_FAIL, also the core's code if memory is out

export class Core {
  readonly memory: WebAssembly.Memory;
  readonly workers = new Workers();
  readonly #exports: Record<string, Call>;
  // Those that applications have: the memory's buffer is another object after it has grown.
  readonly #lentBuffers = new WeakSet<ArrayBufferLike>();
  #death: Error | undefined;

  constructor(
    instance: WebAssembly.Instance,
    readonly files: WrittenFiles,
  ) {
    this.memory = instance.exports.memory as WebAssembly.Memory;
    this.#exports = instance.exports as Record<string, Call>;
  }

  // The value of an exported global variable.
  global(name: string): number {
    return (this.#exports[name] as unknown as WebAssembly.Global).value;
  }

  get isDead(): boolean {
    return this.#death !== undefined;
  }

  // The result of the export `name`, an address or code; 0 if it returns nothing.
  call(name: string, ...args: number[]): number {
    if (this.#death !== undefined) throw this.#death;
    try {
      return this.#exports[name](...args) >>> 0;
    } catch (error) {
      const text = `the WebAssembly module stopped: ${messageOf(error)}`;
      this.#death = new Error(text, {cause: error});
      this.workers.terminate();
      throw this.#death;
    }
  }

  // Calls an export that returns a code. Throws an error that names the operation unless it is 0.
  check(operation: string, name: string, ...args: number[]): void {
    const code = this.call(name, ...args);
    if (code !== 0) throw this.#failure(operation, code);
  }

  // The handle or address that an export returns. Throws an error if it is null.
  make(operation: string, name: string, ...args: number[]): number {
    const handle = this.call(name, ...args);
    if (handle === 0) throw this.#failure(operation, FAIL);
    return handle;
  }

  // The null-terminated text at an address.
  text(address: number): string {
    const bytes = new Uint8Array(this.memory.buffer);
    return new TextDecoder().decode(bytes.slice(address, bytes.indexOf(0, address)));
  }

  bytes(address: number, size: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, address, size);
  }

  // A new block of the module's memory for the application.
  lend(operation: string, size: number): Uint8Array {
    const address = this.allocate(operation, size);
    this.#lentBuffers.add(this.memory.buffer);
    return this.bytes(address, size);
  }

  // Whether the array is a view of the module's memory; byteOffset is then its address.
  has({buffer}: ArrayBufferView): boolean {
    return this.#lentBuffers.has(buffer);
  }

  // A new block of the module's memory.
  allocate(operation: string, size: number): number {
    const address = size <= MOST_BYTES ? this.call('tenon_allocate', size) : 0;
    if (address === 0) {
      throw new CoreError(operation, `out of memory: ${size} bytes are not there`, FAIL);
    }
    return address;
  }

  // A new block with these bytes.
  copyIn(operation: string, bytes: Uint8Array): number {
    const address = this.allocate(operation, bytes.length);
    this.bytes(address, bytes.length).set(bytes);
    return address;
  }

  free(address: number): void {
    this.call('tenon_free', address);
  }

  #failure(operation: string, code: number): CoreError {
    return new CoreError(operation, this.text(this.call('tenon_last_error')), code);
  }

  // Calls `body` with the addresses of copies of the texts.
  withTexts<Result>(operation: string, texts: string[], body: (...at: number[]) => Result): Result {
    const addresses: number[] = [];
    try {
      for (const text of texts) {
        addresses.push(this.copyIn(operation, new TextEncoder().encode(`${text}\0`)));
      }
      return body(...addresses);
    } finally {
      if (!this.isDead) addresses.forEach((address) => this.free(address));
    }
  }
}

const PAGE_BYTES = 65536;
const INITIAL_BYTES = 64 * 2 ** 20;

// The module's memory, which threads can share. The engine reserves addresses for all of it.
function newMemory(): WebAssembly.Memory {
  let failure: unknown;
  for (const gibibytes of [4, 2, 1]) {
    try {
      return new WebAssembly.Memory({
        initial: INITIAL_BYTES / PAGE_BYTES,
        maximum: (gibibytes * 2 ** 30) / PAGE_BYTES,
        shared: true,
      });
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

// The module for the engine. An application may have only the one that every engine runs. Its
// bundler looks for both addresses.
async function loadOwnModule(): Promise<WebAssembly.Module> {
  const name = binaryName();
  const loadFixed = () => loadModule('tenon.wasm', new URL('../tenon.wasm', import.meta.url));
  if (name === 'tenon.wasm') return loadFixed();
  const relaxed = loadModule(name, new URL('../tenon.relaxed.wasm', import.meta.url));
  return env.wasm.simd === 'relaxed' ? relaxed : relaxed.catch(loadFixed);
}

async function load(): Promise<Core> {
  checkFlags();
  checkEngine();
  const threads = await threadCount();
  const module = await loadOwnModule();
  const memory = newMemory();
  const files = new WrittenFiles(memory);
  const imports = {env: {memory}, ...wasiImports(module, memory, await randomSource(), files)};
  const core = new Core(await WebAssembly.instantiate(module, imports), files);
  core.call('_initialize');
  await core.workers.start(core, module, threads - 1);
  core.check('initialization', 'tenon_initialize', logSeverity());
  return core;
}

let loading: Promise<Core> | undefined;

// The module, which all sessions share. A failure is not kept: the next call tries again.
export async function loadCore(): Promise<Core> {
  loading ??= withTimeout(load());
  const mine = loading;
  try {
    const core = await mine;
    if (!core.isDead) return core;
  } catch (error) {
    if (loading === mine) loading = undefined;
    throw error;
  }
  if (loading === mine) loading = undefined;
  return loadCore();
}
