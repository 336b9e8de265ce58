// What differs between browsers and Node.js.

export const isNode =
  typeof (globalThis as {process?: {versions?: {node?: string}}}).process?.versions?.node ===
  'string';

// The bytes at an address or, in Node, in a file.
export async function readBytes(source: string | URL): Promise<Uint8Array> {
  if (isNode && !/^(https?|blob|data):/.test(String(source))) {
    const {readFile} = await import('node:fs/promises');
    const isFileUrl = typeof source === 'string' && source.startsWith('file:');
    return readFile(isFileUrl ? new URL(source) : source);
  }
  const response = await fetch(source);
  if (!response.ok) {
    throw new Error(`cannot load ${source}: ${response.status} ${response.statusText}`);
  }
  return new Uint8Array(await response.arrayBuffer());
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
