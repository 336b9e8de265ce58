// The threads of the module: how many there are, and their workers, which run parts of kernels. They
// need memory that threads share, which pages have only if they are isolated from other origins.
import {env} from '../common/env.js';
import {messageOf} from '../common/error-message.js';
import type {Core} from './core.js';
import {isNode} from './host.js';
import {startWorker, type WorkerTask} from './start-worker.js';

const MOST_BY_DEFAULT = 4;
const STACK_BYTES = 256 * 1024;
const BLOCK_ALIGNMENT = 16;

let hasWarned = false;

function isIsolated(): boolean {
  return isNode || (globalThis as {crossOriginIsolated?: boolean}).crossOriginIsolated === true;
}

async function coreCount(): Promise<number> {
  if (!isNode) return navigator.hardwareConcurrency ?? 1;
  const {availableParallelism, cpus} = await import('node:os');
  return availableParallelism?.() ?? cpus().length;
}

// The threads that env.wasm.numThreads asks for, the caller's included, as far as the host has them.
export async function threadCount(): Promise<number> {
  const wanted = env.wasm.numThreads ?? 0;
  if (isIsolated()) {
    return wanted > 0 ? wanted : Math.min(MOST_BY_DEFAULT, Math.ceil((await coreCount()) / 2));
  }
  if (wanted > 1 && !hasWarned) {
    hasWarned = true;
    console.warn(
      `env.wasm.numThreads is ${wanted}, but this page has one thread: it is not cross-origin ` +
        'isolated (see https://web.dev/articles/cross-origin-isolation-guide)',
    );
  }
  return 1;
}

// Whether the calling thread may sleep in the module: that of a page may not.
export function mayWait(memory: WebAssembly.Memory): boolean {
  try {
    Atomics.wait(new Int32Array(memory.buffer, 0, 1), 0, 0, 0);
    return true;
  } catch {
    return false;
  }
}

interface Terminable {
  terminate(): unknown;
}

// A worker that does not keep the process alive.
async function startInNode(task: WorkerTask, onError: (error: Error) => void): Promise<Terminable> {
  const {Worker} = await import('node:worker_threads');
  const program = `(${startWorker})(require('node:worker_threads').workerData)`;
  const worker = new Worker(program, {eval: true, workerData: task, execArgv: []});
  worker.on('error', onError);
  worker.unref();
  return worker;
}

// The same program as a file beside the code.
const ownAddress = () => new URL('./thread-worker.js', import.meta.url);

function startOwnFile(task: WorkerTask, onError: (error: Error) => void): Terminable {
  // Bundlers of applications know a worker by this form.
  const worker = new Worker(new URL('./thread-worker.js', import.meta.url), {type: 'module'});
  worker.onerror = ({message}) => onError(new Error(message || `cannot load ${ownAddress()}`));
  worker.postMessage(task);
  return worker;
}

// A worker whose program is a blob, which any page of any origin may have; or, if its policy has no
// blobs, the package's file, which then must be of the page's origin.
function startInBrowser(task: WorkerTask, onError: (error: Error) => void): Terminable {
  const program = `onmessage = ({data}) => (${startWorker})(data)`;
  const address = URL.createObjectURL(new Blob([program], {type: 'text/javascript'}));
  try {
    let worker = new Worker(address);
    let isOver = false;
    // A worker that is refused has an event without a message.
    worker.onerror = ({message}) => {
      if (message || isOver) return onError(new Error(message || 'it could not be loaded'));
      try {
        worker = startOwnFile(task, onError) as Worker;
      } catch (error) {
        onError(error as Error);
      }
    };
    worker.postMessage(task);
    return {
      terminate() {
        isOver = true;
        worker.terminate();
      },
    };
  } finally {
    URL.revokeObjectURL(address);
  }
}

// The workers of one module.
export class Workers {
  #workers: Terminable[] = [];
  #hasWarned = false;

  // Starts `count` workers. Loops of kernels use those that have come, and need none.
  async start(core: Core, module: WebAssembly.Module, count: number): Promise<void> {
    const operation = 'initialization';
    core.call('tenon_expect_workers', count, +mayWait(core.memory));
    const blockBytes = core.global('__tls_size');
    const alignment = Math.max(core.global('__tls_align'), BLOCK_ALIGNMENT);
    const alignedBlock = (bytes: number) =>
      Math.ceil(core.allocate(operation, bytes + alignment) / alignment) * alignment;
    for (let index = 0; index < count; ++index) {
      const task: WorkerTask = {
        module,
        memory: core.memory,
        index,
        stackEnd: alignedBlock(STACK_BYTES) + STACK_BYTES,
        threadBlock: alignedBlock(blockBytes),
        timeOrigin: performance.timeOrigin,
      };
      try {
        const start = isNode ? startInNode : startInBrowser;
        this.#workers.push(await start(task, (error) => this.#warn(error)));
      } catch (error) {
        return this.#warn(error);
      }
    }
    // Engines start a worker when the thread that made it next handles events.
    if (count > 0) await new Promise((resolve) => setTimeout(resolve));
  }

  // The workers that were started.
  get count(): number {
    return this.#workers.length;
  }

  terminate(): void {
    this.#workers.forEach((worker) => worker.terminate());
    this.#workers = [];
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    console.warn(
      `a worker of the WebAssembly module ended, and its thread is missing: ${messageOf(error)}`,
    );
  }
}
