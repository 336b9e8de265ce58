// Files with a model's weights, from the option externalData.
import type {FileType, InferenceSession} from '../common/index.js';
import {readBytes} from './host.js';

export interface ExternalFile {
  // Its name in the model.
  path: string;
  bytes: Uint8Array;
}

async function bytesOf(data: FileType): Promise<Uint8Array> {
  if (typeof data === 'string') return readBytes(data);
  if (data instanceof Uint8Array) return data;
  return new Uint8Array(data instanceof Blob ? await data.arrayBuffer() : data);
}

// Loads all files at once. A file without data is loaded by its name.
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
