// The parts of Node.js that the package uses in Node.js.
declare module 'node:fs/promises' {
  export function readFile(path: string | URL): Promise<Uint8Array>;
  export function writeFile(path: string, bytes: Uint8Array): Promise<void>;
}
declare module 'node:crypto' {
  export const webcrypto: Crypto;
}
declare module 'node:worker_threads' {
  export class Worker {
    constructor(program: string | URL, options: object);
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
