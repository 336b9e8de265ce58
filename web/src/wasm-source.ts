// Where the WebAssembly module comes from. Programs for onnxruntime-web may name that package's own
// files: then the module of this package is taken from beside the code, with a warning.
import {env} from '../common/env.js';
import {readBytes} from './host.js';

// An export of the module, by which it is known.
const OWN_EXPORT = 'tenon_initialize';

async function compile(bytes: BufferSource): Promise<WebAssembly.Module> {
  const module = await WebAssembly.compile(bytes);
  if (WebAssembly.Module.exports(module).some(({name}) => name === OWN_EXPORT)) return module;
  throw new Error('it is another program');
}

function configuredAddress(name: string): string | URL | undefined {
  const paths = env.wasm.wasmPaths;
  const isPrefix = typeof paths === 'string' || paths instanceof URL;
  return isPrefix ? paths + name : paths?.wasm;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

let hasWarned = false;

function warn(what: string, error: unknown): void {
  if (hasWarned) return;
  hasWarned = true;
  console.warn(
    `${what} is not used: ${messageOf(error)}. The module of tenon-web is loaded from beside its code.`,
  );
}

// The module in the file `name`, which is at `ownAddress` unless env.wasm names another place.
export async function loadModule(name: string, ownAddress: URL): Promise<WebAssembly.Module> {
  const {wasmBinary} = env.wasm;
  const address = configuredAddress(name);
  if (wasmBinary === undefined && address === undefined) {
    return compile((await readBytes(ownAddress)) as BufferSource);
  }
  const what = wasmBinary === undefined ? `env.wasm.wasmPaths: ${address}` : 'env.wasm.wasmBinary';
  let failure: unknown;
  try {
    return await compile((wasmBinary ?? (await readBytes(address!))) as BufferSource);
  } catch (error) {
    failure = error;
  }
  try {
    const module = await compile((await readBytes(ownAddress)) as BufferSource);
    warn(what, failure);
    return module;
  } catch (error) {
    throw new Error(`${what}: ${messageOf(failure)}; ${ownAddress}: ${messageOf(error)}`);
  }
}

// `loading`, or an error once env.wasm.initTimeout has passed.
export function withTimeout<Result>(loading: Promise<Result>): Promise<Result> {
  const milliseconds = env.wasm.initTimeout ?? 0;
  if (milliseconds === 0) return loading;
  let timer: ReturnType<typeof setTimeout>;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`the WebAssembly module was not there after ${milliseconds} ms`)),
      milliseconds,
    );
  });
  return Promise.race([loading, timeout]).finally(() => clearTimeout(timer));
}
