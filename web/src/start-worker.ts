// What a worker of the module's thread pool does. The function travels to the worker as text, so it
// refers to nothing outside of itself.

export interface WorkerTask {
  // The compiled module and the memory that all threads share.
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  index: number;
  // The worker's own stack, which grows downwards from here, and its thread-local variables.
  stackEnd: number;
  threadBlock: number;
  // Of the thread that runs sessions: clocks of all threads must agree.
  timeOrigin: number;
}

export async function startWorker(task: WorkerTask): Promise<void> {
  const {module, memory} = task;
  const SUCCESS = 0;
  const BAD_FILE = 8;
  const REAL_TIME = 0;
  const shift = performance.timeOrigin - task.timeOrigin;
  const nanoseconds = (milliseconds: number) => BigInt(Math.round(milliseconds * 1e6));
  const wasi: Record<string, (...args: never[]) => number> = {
    clock_time_get(clock: number, _precision: bigint, out: number): number {
      const start = clock === REAL_TIME ? performance.timeOrigin : shift;
      const now = nanoseconds(start) + nanoseconds(performance.now());
      new DataView(memory.buffer).setBigUint64(out, now, true);
      return SUCCESS;
    },
    // What a worker writes is the reason for its end.
    fd_write(_file: number, vectors: number, count: number, written: number): number {
      const view = new DataView(memory.buffer);
      let total = 0;
      for (let i = 0; i < count; ++i) {
        const address = view.getUint32(vectors + 8 * i, true);
        const size = view.getUint32(vectors + 8 * i + 4, true);
        console.error(new TextDecoder().decode(new Uint8Array(memory.buffer, address, size).slice()));
        total += size;
      }
      view.setUint32(written, total, true);
      return SUCCESS;
    },
  };
  for (const {name, kind} of WebAssembly.Module.imports(module)) {
    if (kind === 'function') wasi[name] ??= () => BAD_FILE;
  }
  type Exports = {
    __stack_pointer: WebAssembly.Global;
    __wasm_init_tls(block: number): void;
    tenon_run_worker(index: number): void;
    tenon_worker_failed(): void;
  };
  try {
    const imports = {env: {memory}, wasi_snapshot_preview1: wasi};
    const instance = await WebAssembly.instantiate(module, imports);
    const exports = instance.exports as unknown as Exports;
    exports.__stack_pointer.value = task.stackEnd;
    exports.__wasm_init_tls(task.threadBlock);
    try {
      exports.tenon_run_worker(task.index);
    } catch (error) {
      exports.tenon_worker_failed();
      throw error;
    }
  } catch (error) {
    setTimeout(() => {
      throw error; // which is an event for the thread that made the worker
    });
  }
}
