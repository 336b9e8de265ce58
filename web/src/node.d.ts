// The parts of Node.js that the package uses in Node.js.
declare module 'node:fs/promises' {
  export function readFile(path: string | URL): Promise<Uint8Array>;
  export function writeFile(path: string, bytes: Uint8Array): Promise<void>;
}
declare module 'node:crypto' {
  export const webcrypto: Crypto;
}
