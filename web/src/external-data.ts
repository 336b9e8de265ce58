// Files that a model has its weights in, as the option externalData names them.
import type {InferenceSession} from '../common/index.js';
import {readBytes} from './host.js';

export interface ExternalFile {
  // As the model names it.
  path: string;
  bytes: Uint8Array;
}

async function bytesOf(data: InferenceSession.FileType): Promise<Uint8Array> {
  if (typeof data === 'string') return readBytes(data);
  if (data instanceof Uint8Array) return data;
  return new Uint8Array(data instanceof Blob ? await data.arrayBuffer() : data);
}

// Loads them all at once. A file that is only named is loaded by its name.
export function loadExternalData(
  options: InferenceSession.SessionOptions,
): Promise<ExternalFile[]> {
  const files = options.externalData ?? [];
  if (!Array.isArray(files)) throw new TypeError('options.externalData: expected an array');
  return Promise.all(
    files.map(async (file) => {
      const {path, data} = typeof file === 'string' ? {path: file, data: file} : file;
      return {path: path.replace(/^\.\//, ''), bytes: await bytesOf(data)};
    }),
  );
}
