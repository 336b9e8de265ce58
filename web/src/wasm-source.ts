// Where the WebAssembly module comes from. Programs for onnxruntime-web may name that package's own
// files: then the module of this package is taken from beside the code, with a warning.
import {env} from '../common/env.js';
import {messageOf} from '../common/error-message.js';
import {download, isFile, isNode, readBytes} from './host.js';

// An export of the module, by which it is known.
const OWN_EXPORT = 'tenon_initialize';

function checked(module: WebAssembly.Module): WebAssembly.Module {
  if (WebAssembly.Module.exports(module).some(({name}) => name === OWN_EXPORT)) return module;
  throw new Error('it is another program');
}

async function compile(bytes: BufferSource): Promise<WebAssembly.Module> {
  return checked(await WebAssembly.compile(bytes));
}

// Compiles a file. Browsers begin while it comes, and keep the code for the next visit, if the server
// says what it is.
async function compileFile(address: string | URL): Promise<WebAssembly.Module> {
  if (isNode && isFile(address)) return compile((await readBytes(address)) as BufferSource);
  const response = await download(address);
  if (response.headers.get('content-type')?.startsWith('application/wasm')) {
    return checked(await WebAssembly.compileStreaming(response));
  }
  return compile(await response.arrayBuffer());
}

function configuredAddress(name: string): string | URL | undefined {
  const paths = env.wasm.wasmPaths;
  const isPrefix = typeof paths === 'string' || paths instanceof URL;
  return isPrefix ? paths + name : paths?.wasm;
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
    return compileFile(ownAddress);
  }
  const what = wasmBinary === undefined ? `env.wasm.wasmPaths: ${address}` : 'env.wasm.wasmBinary';
  let failure: unknown;
  try {
    return await (wasmBinary === undefined
      ? compileFile(address!)
      : compile(wasmBinary as BufferSource));
  } catch (error) {
    failure = error;
  }
  try {
    const module = await compileFile(ownAddress);
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
