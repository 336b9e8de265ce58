// What differs between browsers and Node.js.

export const isNode =
  typeof (globalThis as {process?: {versions?: {node?: string}}}).process?.versions?.node ===
  'string';

// The path of a file of Node.
export type FilePath = string | URL;

export function isResponse(opened: Response | FilePath): opened is Response {
  return typeof opened === 'object' && 'headers' in opened;
}

// The response from an address or, in Node, the path of a file.
export async function request(source: string | URL): Promise<Response | FilePath> {
  if (isNode && !/^(https?|blob|data):/.test(String(source))) {
    const isFileUrl = typeof source === 'string' && source.startsWith('file:');
    return isFileUrl ? new URL(source) : source;
  }
  const response = await fetch(source);
  if (response.ok) return response;
  throw new Error(`cannot load ${source}: ${response.status} ${response.statusText}`);
}

// The bytes at an address or, in Node, in a file.
export async function readBytes(source: string | URL): Promise<Uint8Array> {
  const opened = await request(source);
  if (isResponse(opened)) return new Uint8Array(await opened.arrayBuffer());
  return (await import('node:fs/promises')).readFile(opened);
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
