// Files with a model's weights, from the option externalData.
import type {FileType, InferenceSession} from '../common/index.js';
import {readBytes} from './host.js';

// A file by its name in the model.
export interface ExternalFile<Content> {
  path: string;
  content: Content;
}

// What the option names. A file without data is at the address that is its name.
export function externalFiles(
  options: InferenceSession.SessionOptions,
): Array<ExternalFile<FileType>> {
  const files = options.externalData ?? [];
  if (!Array.isArray(files)) throw new TypeError('options.externalData: expected an array');
  return files.map((file) => {
    const {path, data} = typeof file === 'string' ? {path: file, data: file} : file;
    return {path: path.replace(/^\.\//, ''), content: data};
  });
}

async function bytesOf(data: FileType): Promise<Uint8Array> {
  if (typeof data === 'string') return readBytes(data);
  if (data instanceof Uint8Array) return data;
  return new Uint8Array(data instanceof Blob ? await data.arrayBuffer() : data);
}

// Loads all files at once, for sessions that may read them again.
export function loadExternalData(
  options: InferenceSession.SessionOptions,
): Promise<Array<ExternalFile<Uint8Array>>> {
  return Promise.all(
    externalFiles(options).map(async ({path, content}) => ({
      path,
      content: await bytesOf(content),
    })),
  );
}
