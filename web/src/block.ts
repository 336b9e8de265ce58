// Blocks of the module's memory that models and files are read into: each byte is copied there once.
import type {FileType} from '../common/index.js';
import type {Core} from './core.js';
import type {ExternalFile} from './external-data.js';
import {download, filePath, isFile, isNode} from './host.js';

export interface Block {
  readonly address: number;
  readonly size: number;
}

// What can be put into a block once the module is there.
export type Source = (core: Core, operation: string) => Promise<Block>;

function blockOf(core: Core, operation: string, bytes: Uint8Array): Block {
  return {address: core.copyIn(operation, bytes), size: bytes.length};
}

// Appends what comes to a block of the announced size. What exceeds it, because it was compressed on
// the way, or nothing was announced, is put into a greater block at the end.
async function receive(core: Core, operation: string, response: Response): Promise<Block> {
  const {headers, body} = response;
  const isExact = !headers.has('content-encoding');
  const announced = isExact ? Number(headers.get('content-length') ?? 0) : 0;
  const reader = body?.getReader();
  const rest: Uint8Array[] = [];
  let address = core.allocate(operation, announced);
  let size = 0;
  try {
    for (;;) {
      const {done, value} = (await reader?.read()) ?? {done: true};
      if (done) break;
      if (rest.length > 0 || size + value.length > announced) {
        rest.push(value);
      } else {
        core.bytes(address + size, value.length).set(value);
        size += value.length;
      }
    }
    if (rest.length > 0) {
      const first = core.bytes(address, size);
      const whole = core.allocate(operation, rest.reduce((sum, {length}) => sum + length, size));
      const smaller = address;
      address = whole;
      size = 0;
      for (const part of [first, ...rest]) {
        core.bytes(whole + size, part.length).set(part);
        size += part.length;
      }
      core.free(smaller);
    }
    return {address, size};
  } catch (error) {
    if (!core.isDead) core.free(address);
    throw error;
  }
}

const MOST_AT_ONCE = 2 ** 30;

async function readFile(core: Core, operation: string, path: string | URL): Promise<Block> {
  const {open} = await import('node:fs/promises');
  const file = await open(path);
  try {
    const status = await file.stat();
    if (!status.isFile()) return blockOf(core, operation, await file.readFile());
    const {size} = status;
    const address = core.allocate(operation, size);
    let done = 0;
    try {
      while (done < size) {
        const part = core.bytes(address + done, Math.min(size - done, MOST_AT_ONCE));
        const {bytesRead} = await file.read(part, 0, part.length, done);
        if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
        done += bytesRead;
      }
    } catch (error) {
      if (!core.isDead) core.free(address);
      throw error;
    }
    return {address, size};
  } finally {
    await file.close();
  }
}

// Begins to load what is at an address, or in a file, or has the bytes already.
export async function openSource(source: FileType): Promise<Source> {
  if (typeof source === 'string') {
    if (isNode && isFile(source)) {
      return (core, operation) => readFile(core, operation, filePath(source));
    }
    const response = await download(source);
    return (core, operation) => receive(core, operation, response);
  }
  if (source instanceof Blob) {
    return async (core, operation) =>
      blockOf(core, operation, new Uint8Array(await source.arrayBuffer()));
  }
  const bytes = source instanceof Uint8Array ? source : new Uint8Array(source);
  return async (core, operation) => blockOf(core, operation, bytes);
}

// All blocks, or none of them and the first error.
async function readAll(
  core: Core,
  operation: string,
  sources: readonly Source[],
): Promise<Block[]> {
  const outcomes = await Promise.allSettled(sources.map((source) => source(core, operation)));
  const blocks = outcomes.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  const failure = outcomes.find((each) => each.status === 'rejected');
  if (failure === undefined) return blocks;
  if (!core.isDead) blocks.forEach(({address}) => core.free(address));
  throw failure.reason;
}

// A model and its files in the module's memory.
export class ModelBlocks {
  readonly model: Block;
  readonly files: ReadonlyArray<ExternalFile<Block>>;
  #isGiven = false;

  // `blocks` are the model's and then those of the files.
  constructor(
    readonly core: Core,
    readonly blocks: readonly Block[],
    files: ReadonlyArray<ExternalFile<unknown>>,
  ) {
    this.model = blocks[0];
    this.files = files.map(({path}, i) => ({path, content: blocks[i + 1]}));
  }

  // A session frees them when it ends.
  giveTo(session: number): void {
    this.#isGiven = true;
    for (const {address} of this.blocks) this.core.call('tenon_session_keep', session, address);
  }

  // Frees them, unless a session does.
  free(): void {
    if (this.#isGiven || this.core.isDead) return;
    for (const {address} of this.blocks) this.core.free(address);
  }
}

// Puts a model and its files there. `sources` are the model and then those files.
export async function readBlocks(
  core: Core,
  operation: string,
  sources: readonly Source[],
  files: ReadonlyArray<ExternalFile<unknown>>,
): Promise<ModelBlocks> {
  return new ModelBlocks(core, await readAll(core, operation, sources), files);
}

// Copies a model and its files.
export function copyBlocks(
  core: Core,
  operation: string,
  model: Uint8Array,
  files: ReadonlyArray<ExternalFile<Uint8Array>>,
): ModelBlocks {
  const made: Block[] = [];
  try {
    for (const bytes of [model, ...files.map(({content}) => content)]) {
      made.push(blockOf(core, operation, bytes));
    }
  } catch (error) {
    if (!core.isDead) made.forEach(({address}) => core.free(address));
    throw error;
  }
  return new ModelBlocks(core, made, files);
}
