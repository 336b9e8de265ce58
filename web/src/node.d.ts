// The parts of Node.js that the package uses in Node.js.
declare module 'node:fs/promises' {
  export function readFile(path: string | URL): Promise<Uint8Array>;
  export function writeFile(path: string, bytes: Uint8Array): Promise<void>;
  interface FileHandle {
    stat(): Promise<{size: number; isFile(): boolean}>;
    read(into: Uint8Array, at: number, size: number, from: number): Promise<{bytesRead: number}>;
    readFile(): Promise<Uint8Array>;
    close(): Promise<void>;
  }
  export function open(path: string | URL): Promise<FileHandle>;
}
declare module 'node:crypto' {
  export const webcrypto: Crypto;
}
declare module 'node:os' {
  export const availableParallelism: (() => number) | undefined; // since Node.js 18.14
  export function cpus(): unknown[];
}
declare module 'node:worker_threads' {
  interface Options {
    eval?: boolean;
    workerData?: unknown;
    execArgv: string[];
  }
  export class Worker {
    constructor(program: string | URL, options: Options);
    on(event: 'error', listener: (error: Error) => void): void;
    on(event: string, listener: (value: unknown) => void): void;
    postMessage(message: unknown, transfer: readonly ArrayBuffer[]): void;
    ref(): void;
    unref(): void;
    terminate(): Promise<number>;
  }
  export const parentPort: {
    on(event: string, listener: (value: unknown) => void): void;
    postMessage(message: unknown, transfer: readonly ArrayBuffer[]): void;
  } | null;
}
