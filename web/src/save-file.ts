// Gives files to the user: a file in Node.js, a download in a page.
import {isNode} from './host.js';

type Save = (path: string, bytes: Uint8Array<ArrayBuffer>) => void | Promise<void>;

async function save(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  if (isNode) {
    const {writeFile} = await import('node:fs/promises');
    return writeFile(path, bytes);
  }
  if (typeof document === 'undefined') {
    throw new Error(`cannot write ${path}: only a page can offer a download`);
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = path.split('/').pop()!;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // downloads start later
}

let current: Save = save;

export const saveFile: Save = (path, bytes) => current(path, bytes);

// For threads that can do neither: files are passed to `other` from now on.
export function saveFilesWith(other: Save): void {
  if (!isNode) current = other;
}
