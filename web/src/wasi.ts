// The few WASI calls that the module needs from its host, for browsers and Node: a console, a clock,
// random numbers, and the files that it writes.
import type {WrittenFiles} from './written-files.js';

const SUCCESS = 0;
const BAD_FILE = 8; // EBADF: no file is open, and none can be opened
const STANDARD_OUTPUT = 1;
const STANDARD_ERROR = 2;
const REAL_TIME = 0;

// Collects the text that is written to a stream, and prints it line by line.
class LinePrinter {
  #rest = '';
  readonly #decoder = new TextDecoder();

  constructor(readonly print: (line: string) => void) {}

  write(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, {stream: true})).split('\n');
    this.#rest = lines.pop()!;
    lines.forEach((line) => this.print(line));
  }
}

function nanosecondsOf(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds * 1e6));
}

// The functions that `module` imports. All that are not here deal with files and find none.
export function wasiImports(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  fillRandom: (bytes: Uint8Array) => void,
  files: WrittenFiles,
): WebAssembly.Imports {
  const printers = new Map([
    [STANDARD_OUTPUT, new LinePrinter((line) => console.log(line))],
    [STANDARD_ERROR, new LinePrinter((line) => console.error(line))],
  ]);
  const view = () => new DataView(memory.buffer);
  const calls: Record<string, (...args: never[]) => number> = {
    fd_write(file: number, vectors: number, count: number, written: number): number {
      const printer = printers.get(file) ?? files.writer(file);
      if (printer === undefined) return BAD_FILE;
      const records = view();
      let total = 0;
      for (let i = 0; i < count; ++i) {
        const address = records.getUint32(vectors + 8 * i, true);
        const size = records.getUint32(vectors + 8 * i + 4, true);
        printer.write(new Uint8Array(memory.buffer, address, size).slice()); // as it may be shared
        total += size;
      }
      records.setUint32(written, total, true);
      return SUCCESS;
    },
    clock_time_get(clock: number, _precision: bigint, out: number): number {
      const start = clock === REAL_TIME ? nanosecondsOf(performance.timeOrigin) : 0n;
      view().setBigUint64(out, start + nanosecondsOf(performance.now()), true);
      return SUCCESS;
    },
    clock_res_get(_clock: number, out: number): number {
      view().setBigUint64(out, 1000n, true);
      return SUCCESS;
    },
    random_get(address: number, size: number): number {
      const bytes = new Uint8Array(size); // sources do not fill shared memory
      fillRandom(bytes);
      new Uint8Array(memory.buffer, address, size).set(bytes);
      return SUCCESS;
    },
    environ_sizes_get(count: number, size: number): number {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return SUCCESS;
    },
    environ_get: () => SUCCESS,
    proc_exit(status: number): number {
      throw new Error(`it exited with status ${status}`);
    },
  };
  const imports: WebAssembly.ModuleImports = {};
  for (const {name, kind} of WebAssembly.Module.imports(module)) {
    if (kind !== 'function') continue;
    imports[name] = calls[name] ?? files.calls[name] ?? (() => BAD_FILE);
  }
  return {wasi_snapshot_preview1: imports};
}
