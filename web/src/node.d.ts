// The parts of Node.js that the package uses in Node.js.
declare module 'node:fs/promises' {
  export function readFile(path: string | URL): Promise<Uint8Array>;
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
    eval: boolean;
    workerData: unknown;
    execArgv: string[];
  }
  export class Worker {
    constructor(program: string, options: Options);
    on(event: 'error', listener: (error: Error) => void): void;
    unref(): void;
    terminate(): Promise<number>;
  }
}
