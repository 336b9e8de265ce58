// What differs between browsers and Node.js.

export const isNode =
  typeof (globalThis as {process?: {versions?: {node?: string}}}).process?.versions?.node ===
  'string';

// Whether a source is a file of Node. Behind `isNode &&` only: bundles for browsers then have no
// code for files.
export function isFile(source: string | URL): boolean {
  return !/^(https?|blob|data):/.test(String(source));
}

// The file that such a source names, as the functions of Node take it.
export function filePath(source: string | URL): string | URL {
  return typeof source === 'string' && source.startsWith('file:') ? new URL(source) : source;
}

// The response from an address.
export async function download(source: string | URL): Promise<Response> {
  const response = await fetch(source);
  if (response.ok) return response;
  throw new Error(`cannot load ${source}: ${response.status} ${response.statusText}`);
}

// The bytes at an address or, in Node, in a file.
export async function readBytes(source: string | URL): Promise<Uint8Array> {
  if (isNode && isFile(source)) {
    return (await import('node:fs/promises')).readFile(filePath(source));
  }
  return new Uint8Array(await (await download(source)).arrayBuffer());
}

// Fills any number of bytes; one call of getRandomValues has a limit.
export async function randomSource(): Promise<(bytes: Uint8Array) => void> {
  const source = isNode ? (await import('node:crypto')).webcrypto : globalThis.crypto;
  const most = 65536;
  return (bytes) => {
    for (let i = 0; i < bytes.length; i += most) {
      source.getRandomValues(bytes.subarray(i, i + most) as Uint8Array<ArrayBuffer>);
    }
  };
}
